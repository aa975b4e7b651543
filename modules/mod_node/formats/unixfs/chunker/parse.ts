/** Parses chunker options such as `size-262144`, `rabin-1024-4096-8192`, `buzhash`. */
import { failure } from "../../../util/errors.ts";
import type { Names } from "../../cid/codecs.ts";
import { BuzhashChunker } from "./buzhash.ts";
import { type Chunker, SizeChunker, WholeChunker } from "./chunker.ts";
import { RabinChunker } from "./rabin.ts";

export const defaultChunkSize = 262_144;
/** Default maximum chunk size in bytes. */
const MAX_CHUNK = 1_048_576;
const MIN_RABIN = 16;

const tooLong = (maxChunk: number) =>
  failure("CHUNKER_INVALID", { reason: `chunker parameters may not exceed the maximum chunk size of ${maxChunk}` });

/**
 * Kubo subtracts the window of 16 bytes from the minimum chunk size as an unsigned number. If the
 * minimum is smaller, the result wraps around and the whole file becomes one chunk. A file is
 * refused only if that chunk is too long for a block.
 */
const tooSmall = (average: number, maxChunk: number) =>
  failure("CHUNKER_INVALID", {
    reason:
      `rabin min must be greater than 16: rabin-${average} makes one chunk of the whole file, and this file is longer than the maximum ` +
      `chunk size of ${maxChunk}; use rabin-${3 * MIN_RABIN} or more`,
  });

/**
 * Returns a function that creates a chunker for each file. With `names` set to "multicodec", the
 * text is parsed as in Kubo 0.43: a size takes no second number, and anything after `buzhash-` is
 * ignored.
 *
 * @throws NodeError with the error text of go-ipfs
 */
export function parseChunker(text: string, maxChunk = MAX_CHUNK, names?: Names): () => Chunker {
  const isLater = names === "multicodec";
  const [name, number, ...more] = text.split("-");
  if (text === "" || text === "default") return () => new SizeChunker(defaultChunkSize);
  if (isLater ? name === "buzhash" : text === "buzhash") return () => new BuzhashChunker();
  if (isLater && name === "size" && (number === undefined || more.length > 0)) {
    throw failure("CHUNKER_INVALID", { reason: "incorrect chunker string format (expected size-{size})" });
  }
  if (name === "size" && number !== undefined) {
    const size = integer(number);
    if (size <= 0) throw failure("CHUNKER_INVALID", { reason: "chunker size must be greater than 0" });
    if (size > maxChunk) throw tooLong(maxChunk);
    return () => new SizeChunker(size);
  }
  if (text === "rabin" || text.startsWith("rabin-")) {
    const { shortest, average, longest } = parseRabin(text, maxChunk);
    if (shortest < MIN_RABIN) return () => new WholeChunker(maxChunk, tooSmall(average, maxChunk));
    return () => new RabinChunker(shortest, average, longest);
  }
  throw failure("CHUNKER_INVALID", { reason: `unrecognized chunker option: ${text}` });
}

function parseRabin(text: string, maxChunk: number): { shortest: number; average: number; longest: number } {
  const parts = text.split("-").slice(1);
  if (parts.length === 0) return withAverage(defaultChunkSize, maxChunk);
  if (parts.length === 1) return withAverage(integer(parts[0] as string), maxChunk);
  if (parts.length !== 3) {
    throw failure("CHUNKER_INVALID", {
      reason: "incorrect format (expected 'rabin' 'rabin-[avg]' or 'rabin-[min]-[avg]-[max]'",
    });
  }
  const shortest = labelled(parts[0] as string, "min", "first label must be min");
  if (shortest < MIN_RABIN) throw failure("CHUNKER_INVALID", { reason: "rabin min must be greater than 16" });
  const average = labelled(parts[1] as string, "avg", "second label must be avg");
  const longest = labelled(parts[2] as string, "max", "final label must be max");
  if (shortest >= average)
    throw failure("CHUNKER_INVALID", { reason: "incorrect format: rabin-min must be smaller than rabin-avg" });
  if (average >= longest)
    throw failure("CHUNKER_INVALID", { reason: "incorrect format: rabin-avg must be smaller than rabin-max" });
  if (longest > maxChunk) throw tooLong(maxChunk);
  return { shortest, average, longest };
}

function withAverage(average: number, maxChunk: number): { shortest: number; average: number; longest: number } {
  const longest = average + Math.floor(average / 2);
  if (longest > maxChunk) throw tooLong(maxChunk);
  return { shortest: Math.floor(average / 3), average, longest };
}

function labelled(part: string, label: string, otherwise: string): number {
  const [first, second] = part.split(":");
  if (second === undefined) return integer(first as string);
  if (first !== label) throw failure("CHUNKER_INVALID", { reason: otherwise });
  return integer(second);
}

/** Parses a decimal number as Go does. */
function integer(text: string): number {
  if (!/^[+-]?\d+$/.test(text))
    throw failure("CHUNKER_INVALID", { reason: `strconv.Atoi: parsing "${text}": invalid syntax` });
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw failure("CHUNKER_INVALID", { reason: `strconv.Atoi: parsing "${text}": value out of range` });
  return value;
}
