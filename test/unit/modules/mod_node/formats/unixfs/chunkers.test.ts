import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parseChunker } from "#node/formats/unixfs/chunker/parse.ts";
import { goRandom } from "#test/support/go_random.ts";

interface Case {
  readonly chunker: string;
  readonly content: { readonly goRandom: { readonly size: number; readonly seed: number } };
  readonly chunkSizes: readonly number[];
}

const fixtures = new URL("../../../../../fixtures/vectors/", import.meta.url);
const read = (name: string) => JSON.parse(readFileSync(new URL(name, fixtures), "utf8"));

/** Lengths of the chunks if the bytes arrive in pieces of `piece` bytes. */
function cutUp(chunker: string, bytes: Uint8Array, piece: number): number[] {
  const cutter = parseChunker(chunker)();
  const lengths: number[] = [];
  let from = 0;
  for (let end = 0; end < bytes.length; ) {
    end = Math.min(end + piece, bytes.length, from + cutter.maxLength);
    const cut = cutter.cut(bytes, from, end);
    assert.ok(cut < 0 ? end - from < cutter.maxLength : cut > from, "the chunker makes no progress");
    if (cut < 0) continue;
    lengths.push(cut - from);
    from = cut;
    end = cut;
  }
  if (from < bytes.length) lengths.push(bytes.length - from);
  return lengths;
}

test("goRandom reproduces the random stream of Go that the expected sizes are based on", () => {
  for (const { seed, first16hex } of read("go-math-rand.json").check) {
    assert.equal(goRandom(16, seed).toString("hex"), first16hex);
  }
});

describe("chunkers cut where go-ipfs cuts, whatever the size of the pieces in which bytes arrive", () => {
  for (const { chunker, content, chunkSizes } of read("chunkers-derived.json").cases as Case[]) {
    const bytes = goRandom(content.goRandom.size, content.goRandom.seed);
    for (const piece of [65_536, 1_000_003, 777]) {
      test(`${chunker} in pieces of ${piece}`, () => assert.deepEqual(cutUp(chunker, bytes, piece), chunkSizes));
    }
  }
  test("size-N cuts equal chunks, and the last chunk has the rest", () => {
    assert.deepEqual(cutUp("size-1000", new Uint8Array(3500), 300), [1000, 1000, 1000, 500]);
    assert.deepEqual(cutUp("size-1000-7", new Uint8Array(1000), 300), [1000]);
  });
});

describe("the chunks of every chunker add up to the file", () => {
  const averages = Array.from({ length: 65 }, (_, average) => `rabin-${average}`);
  const triples = ["rabin-16-17-18", "rabin-16-17-1000", "rabin-16-300-301", "rabin-47-48-49", "rabin-16-1024-1048576"];
  const others = ["size-1", "size-2", "size-1048576", "buzhash", "rabin", "rabin-1000", "default", ""];
  for (const text of [...averages, ...triples, ...others]) {
    test(`${text || "no text"} makes chunks that add up to the file, and no empty chunk`, () => {
      for (const size of [0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 1000, 5003]) {
        for (const piece of [1, 7, 64, 10_000]) {
          const lengths = cutUp(text, goRandom(size, size), piece);
          assert.equal(
            lengths.reduce((sum, length) => sum + length, 0),
            size,
          );
          assert.ok(
            lengths.every((length) => length > 0),
            `${lengths}`,
          );
        }
      }
    });
  }
});

describe("rabin with an average below 48 makes one chunk of the whole file, as in go-ipfs", () => {
  for (const average of [0, 1, 2, 3, 4, 16, 32, 47]) {
    test(`rabin-${average}`, () => {
      assert.deepEqual(cutUp(`rabin-${average}`, goRandom(20_000, 1), 777), [20_000]);
      const whole = new Uint8Array(1_048_577);
      assert.deepEqual(cutUp(`rabin-${average}`, whole.subarray(1), 65_536), [1_048_576]);
      assert.throws(() => cutUp(`rabin-${average}`, whole, 65_536), {
        message:
          `rabin min must be greater than 16: rabin-${average} makes one chunk of the whole file, and this file is longer ` +
          "than the maximum chunk size of 1048576; use rabin-48 or more",
      });
    });
  }
  test("rabin-48 makes many chunks", () => assert.ok(cutUp("rabin-48", goRandom(20_000, 1), 777).length > 100));
});

describe("invalid chunker options are rejected with the error text of go-ipfs", () => {
  const refused: Record<string, string> = {
    "size-0": "chunker size must be greater than 0",
    "size-1048577": "chunker parameters may not exceed the maximum chunk size of 1048576",
    "size-x": 'strconv.Atoi: parsing "x": invalid syntax',
    "rabin-1-2": "incorrect format (expected 'rabin' 'rabin-[avg]' or 'rabin-[min]-[avg]-[max]'",
    "rabin-15-512-1024": "rabin min must be greater than 16",
    "rabin-max:36-512-1024": "first label must be min",
    "rabin-36-min:512-1024": "second label must be avg",
    "rabin-36-512-avg:1024": "final label must be max",
    "rabin-512-512-1024": "incorrect format: rabin-min must be smaller than rabin-avg",
    "rabin-36-1024-1024": "incorrect format: rabin-avg must be smaller than rabin-max",
    "rabin-800000": "chunker parameters may not exceed the maximum chunk size of 1048576",
    buzhash2: "unrecognized chunker option: buzhash2",
  };
  for (const [text, message] of Object.entries(refused)) {
    test(text, () => assert.throws(() => parseChunker(text), { message }));
  }
});
