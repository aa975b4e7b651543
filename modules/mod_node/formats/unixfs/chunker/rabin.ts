import type { Chunker } from "./chunker.ts";

/** The irreducible polynomial that go-ipfs uses, of degree 53. */
const polynomial = 17437180132763653n;
const degree = 53;
const window = 16;

interface Tables {
  /**
   * For each byte: `out` is the value to remove when the byte leaves the window; `mod` reduces the
   * fingerprint when the byte is above the degree. Both are stored as 32-bit halves.
   */
  readonly outHigh: Uint32Array;
  readonly outLow: Uint32Array;
  readonly modHigh: Uint32Array;
  readonly modLow: Uint32Array;
}

function reduce(value: bigint): bigint {
  let rest = value;
  for (let top = rest.toString(2).length - 1; top >= degree; top = rest.toString(2).length - 1) {
    rest ^= polynomial << BigInt(top - degree);
    if (rest === 0n) return rest;
  }
  return rest;
}

function makeTables(): Tables {
  const fresh = () => new Uint32Array(256);
  const tables = { outHigh: fresh(), outLow: fresh(), modHigh: fresh(), modLow: fresh() };
  for (let byte = 0; byte < 256; byte += 1) {
    const out = reduce(BigInt(byte) << BigInt(8 * (window - 1)));
    const above = BigInt(byte) << BigInt(degree);
    const mod = reduce(above) | above;
    tables.outHigh[byte] = Number(out >> 32n);
    tables.outLow[byte] = Number(out & 0xffffffffn);
    tables.modHigh[byte] = Number(mod >> 32n);
    tables.modLow[byte] = Number(mod & 0xffffffffn);
  }
  return tables;
}

let tables: Tables | undefined;

/**
 * Finds the same boundaries as the `rabin` chunker of go-ipfs: a boundary wherever the low bits of
 * the fingerprint of the last 16 bytes are zero. The number of these bits is the logarithm of the
 * average size.
 */
export class RabinChunker implements Chunker {
  readonly maxLength: number;
  readonly #shortest: number;
  readonly #mask: number;
  readonly #tables: Tables;
  readonly #window = new Uint8Array(window);
  #ringIndex = 0;
  #high = 0;
  #low = 0;
  #seen = 0;

  /** Sizes are in bytes. The average is rounded down to a power of two. */
  constructor(shortest: number, average: number, longest: number) {
    this.maxLength = longest;
    this.#shortest = shortest;
    this.#mask = 2 ** Math.floor(Math.log2(average)) - 1;
    tables ??= makeTables();
    this.#tables = tables;
  }

  #begin(): void {
    // This is the state after a byte of value 1 was shifted into an empty window.
    this.#window.fill(0);
    this.#window[0] = 1;
    this.#ringIndex = 1;
    this.#high = 0;
    this.#low = 1;
    this.#seen = this.#shortest - window;
  }

  cut(bytes: Uint8Array, from: number, end: number): number {
    if (end - from < this.#shortest) return -1;
    if (this.#seen === 0) this.#begin();
    const { outHigh, outLow, modHigh, modLow } = this.#tables;
    const ring = this.#window;
    const mask = this.#mask;
    const earliest = from + this.#shortest;
    let ringIndex = this.#ringIndex;
    let high = this.#high;
    let low = this.#low;
    let at = from + this.#seen;
    while (at < end) {
      const byte = bytes[at] as number;
      const leaving = ring[ringIndex] as number;
      ring[ringIndex] = byte;
      ringIndex = (ringIndex + 1) % window;
      high ^= outHigh[leaving] as number;
      low ^= outLow[leaving] as number;
      const above = (high >>> (degree - 8 - 32)) & 0xff;
      high = ((high << 8) | (low >>> 24)) ^ (modHigh[above] as number);
      low = ((low << 8) | byte) ^ (modLow[above] as number);
      at += 1;
      if (at >= earliest && ((low & mask) === 0 || at - from === this.maxLength)) {
        this.#seen = 0;
        return at;
      }
    }
    this.#ringIndex = ringIndex;
    this.#high = high;
    this.#low = low;
    this.#seen = at - from;
    return -1;
  }
}
