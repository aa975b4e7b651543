/** Makes values, documents and archives from a seed, and damages them. */
import { CarWriter } from "@ipld/car";
import { CID } from "multiformats/cid";
import type { Random } from "#test/endurance/fuzz/random.ts";
import { rawBlock } from "#test/unit/modules/mod_http_api/faults/lab.ts";

const names = [
  "a",
  "b",
  "",
  "__proto__",
  "constructor",
  "toString",
  "/",
  "bytes",
  "ü",
  "\0",
  "10",
  "9",
  "a/b",
  "😀",
  "\ud7ff",
];
const texts = [...names, "\u2028", '"', "\\", "\x7f", "<&>", "x".repeat(300)];
const numbers = [0, 1, -1, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32, -(2 ** 32), 1.5, -0.25, 1e21, 5e-324];

/** Makes a value that every codec of a node can store. */
export function value(random: Random, depth = 4): unknown {
  switch (random.below(depth > 0 ? 9 : 7)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
      return random.pick(numbers);
    case 3:
      return random.below(2 ** 31);
    case 4:
      return random.pick(texts);
    case 5:
      return new Uint8Array(Buffer.from(random.bytes(40), "latin1"));
    case 6:
      return random.chance(0.5) ? rawBlock(random.bytes(3)).cid : rawBlock("known").cid;
    case 7:
      return random.some(4, () => value(random, depth - 1));
    default:
      return record(random, depth - 1);
  }
}

export function record(random: Random, depth = 4): Record<string, unknown> {
  // The key "/" has a special meaning, and a literal key __proto__ would set the prototype.
  const pairs = random.some(
    4,
    () => [random.pick(names.filter((name) => name !== "/")), value(random, depth)] as const,
  );
  return Object.fromEntries(pairs);
}

/** Cuts, flips, doubles, removes or inserts bytes; sometimes it changes nothing. */
export function damaged(random: Random, bytes: Uint8Array): Buffer {
  let made = Buffer.from(bytes);
  for (let left = random.below(4); left > 0 && made.length > 0; left -= 1) {
    const at = random.below(made.length);
    const piece = made.subarray(at, at + 1 + random.below(8));
    switch (random.below(5)) {
      case 0:
        made = made.subarray(0, at);
        break;
      case 1:
        made[at] = (made[at] as number) ^ (1 << random.below(8));
        break;
      case 2:
        made = Buffer.concat([made.subarray(0, at), piece, piece, made.subarray(at + piece.length)]);
        break;
      case 3:
        made = Buffer.concat([made.subarray(0, at), made.subarray(at + piece.length)]);
        break;
      default:
        made = Buffer.concat([made.subarray(0, at), Buffer.from(random.bytes(9), "latin1"), made.subarray(at)]);
    }
  }
  return made;
}

export interface Archive {
  readonly roots: readonly CID[];
  readonly blocks: readonly { readonly cid: CID; readonly bytes: Uint8Array }[];
  readonly bytes: Buffer;
}

/** Makes an archive of raw blocks; the first ones are the roots. */
export async function archive(random: Random): Promise<Archive> {
  const blocks = [rawBlock("known"), ...random.some(5, () => rawBlock(random.bytes(50)))];
  const roots = blocks.slice(0, 1 + random.below(blocks.length)).map(({ cid }) => cid);
  const { writer, out } = CarWriter.create(roots);
  const read = Array.fromAsync(out);
  for (const block of blocks) await writer.put(block);
  await writer.close();
  return { roots, blocks, bytes: Buffer.concat(await read) };
}

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

/** Makes texts for arguments and options: existing things, missing ones, and impossible ones. */
export function word(random: Random): string {
  if (random.chance(0.15)) return random.bytes(12);
  if (random.chance(0.2)) return path(random);
  return random.pick(words);
}

const words = [
  emptyDirectory,
  rawBlock("known").cid.toString(),
  CID.parse(emptyDirectory).toV1().toString(),
  "bafkqablimvwgy3y",
  "",
  "0",
  "1",
  "-1",
  "7",
  "2147483648",
  "9223372036854775807",
  "18446744073709551616",
  "1e3",
  "0x10",
  "true",
  "false",
  "T",
  "maybe",
  "json",
  "text",
  "xml",
  "protobuf",
  "base64",
  "base32",
  "z",
  "sha2-256",
  "sha3-512",
  "blake2b-160",
  "identity",
  "murmur3",
  "dag-cbor",
  "raw",
  "v0",
  "size-1",
  "size-0",
  "rabin-16-32-64",
  "buzhash",
  "self",
  "fuzz",
  "Routing.Type",
  "Identity.PrivKey",
  "Addresses",
  "Bootstrap",
  "recursive",
  "indirect",
  "__proto__",
  "constructor",
  "<hash> <size> <src>",
  "%s %c %P %",
  "/",
  "/fuzz",
  "/fuzz/a",
  "\0",
  "ü",
  "debug",
  "all",
  "lowpower",
  "1s",
  "5ns",
  "http://127.0.0.1:1/",
];

const roots = ["", "/", "/ipfs/", "/ipld/", "/ipns/", "/store/", "/name/", "//", "ipfs/", "/fuzz/"];
const components = [
  emptyDirectory,
  rawBlock("known").cid.toString(),
  "a",
  "..",
  ".",
  "",
  "\0",
  "__proto__",
  '"',
  "0",
  "ü",
  "self",
];

export const path = (random: Random): string =>
  random.pick(roots) + random.some(5, () => random.pick(components)).join("/");
