/**
 * The byte stream of `random <size> <seed>`, the tool of the reference's tests from which many
 * expected results are made.
 */
import { readFileSync } from "node:fs";

const file = new URL("../fixtures/vectors/go-math-rand.json", import.meta.url);
const cells = 607;
const modulus = 2 ** 31 - 1;

let constants: readonly bigint[] | undefined;

const readConstants = (): readonly bigint[] =>
  (JSON.parse(readFileSync(file, "utf8")).constants as string[]).map((text) => BigInt(text));

/** Returns the first `size` bytes of the stream for `seed`. */
export function goRandom(size: number, seed: number): Buffer {
  constants ??= readConstants();
  const high = new Int32Array(cells);
  const low = new Uint32Array(cells);
  let state = seed % modulus || 89_482_311;
  const step = () => {
    state = Number((48_271n * BigInt(state)) % BigInt(modulus));
    return BigInt(state);
  };
  for (let skipped = 0; skipped < 20; skipped += 1) step();
  for (let at = 0; at < cells; at += 1) {
    const word = (step() << 40n) ^ (step() << 20n) ^ step() ^ (constants[at] as bigint);
    high[at] = Number((word >> 32n) & 0x7fffffffn);
    low[at] = Number(word & 0xffffffffn);
  }
  let tap = 0;
  let feed = 334;
  const bytes = Buffer.alloc(Math.ceil(size / 4) * 4);
  for (let at = 0; at < size; at += 4) {
    tap = tap === 0 ? cells - 1 : tap - 1;
    feed = feed === 0 ? cells - 1 : feed - 1;
    const sum = (low[feed] as number) + (low[tap] as number);
    low[feed] = sum;
    high[feed] = ((high[feed] as number) + (high[tap] as number) + (sum > 0xffffffff ? 1 : 0)) & 0x7fffffff;
    bytes.writeUInt32LE((((high[feed] as number) << 1) | ((low[feed] as number) >>> 31)) >>> 0, at);
  }
  return bytes.subarray(0, size);
}
