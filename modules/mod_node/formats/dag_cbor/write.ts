/** Encodes values of the "IPLD Data Model" as CBOR. */
import type { CID } from "multiformats/cid";
import { atOnce, type Steps } from "../../util/async/steps.ts";
import { bytewise, type Compare, decodeCborSteps, type Scalar, type Value, visitValueSteps } from "./value.ts";
import { visitCborSteps } from "./visit.ts";

const shorterFirst = (one: string, other: string): number => one.length - other.length || bytewise(one, other);

/**
 * Encodes canonical CBOR: 64-bit floats, keys sorted by length and then by bytes, everything else
 * as short as possible.
 */
export const encodeCbor = (value: Value): Uint8Array => atOnce(encodeCborSteps(value));

/** Same as `encodeCbor`, in steps. */
export const encodeCborSteps = (value: Value): Steps<Uint8Array> => written(value, shorterFirst);

/** Encodes CBOR without sorting keys: maps keep their order. */
export const encodePlainCborSteps = (value: Value): Steps<Uint8Array> => written(value, () => 0);

function* written(value: Value, compare: Compare): Steps<Uint8Array> {
  const writer = new Writer();
  yield* visitValueSteps(value, compare, {
    enter: (container) =>
      container instanceof Map ? writer.head(5, container.size) : writer.head(4, container.length),
    leave: () => {},
    item: () => {},
    key: (key) => writer.text(key),
    scalar: (scalar) => writer.scalar(scalar),
  });
  return writer.bytes;
}

class Writer {
  #buffer = Buffer.allocUnsafe(1024);
  #length = 0;

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  scalar(value: Scalar): void {
    if (typeof value === "string") this.text(value);
    else if (typeof value === "number") this.#float(value);
    else if (typeof value === "bigint") value < 0n ? this.head(1, -1n - value) : this.head(0, value);
    else if (value instanceof Uint8Array) this.#string(2, value);
    else if (value === null || typeof value === "boolean") this.#byte(value === null ? 0xf6 : value ? 0xf5 : 0xf4);
    else this.#link(value);
  }

  text(text: string): void {
    this.head(3, text.length);
    const at = this.#reserve(text.length);
    this.#buffer.write(text, at, "latin1");
  }

  head(major: number, value: number | bigint): void {
    const first = major << 5;
    if (value < 24) {
      this.#byte(first | Number(value));
      return;
    }
    const power = value < 0x100 ? 0 : value < 0x10000 ? 1 : value < 0x100000000 ? 2 : 3;
    this.#byte(first | (24 + power));
    const size = 1 << power;
    const at = this.#reserve(size);
    if (power === 3) this.#buffer.writeBigUInt64BE(BigInt(value), at);
    else this.#buffer.writeUIntBE(Number(value), at, size);
  }

  #float(value: number): void {
    this.#byte(0xfb);
    const at = this.#reserve(8);
    this.#buffer.writeDoubleBE(value, at);
  }

  #link(cid: CID): void {
    this.head(6, 42);
    this.#string(2, Buffer.concat([Uint8Array.of(0), cid.bytes]));
  }

  #string(major: number, bytes: Uint8Array): void {
    this.head(major, bytes.length);
    const at = this.#reserve(bytes.length);
    this.#buffer.set(bytes, at);
  }

  #byte(byte: number): void {
    const at = this.#reserve(1);
    this.#buffer[at] = byte;
  }

  /** Reserves bytes and returns their offset. This may replace the buffer. */
  #reserve(size: number): number {
    const at = this.#length;
    this.#length += size;
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, at));
      this.#buffer = larger;
    }
    return at;
  }
}

/**
 * Returns the same value in canonical form; returns the input itself if it is already canonical.
 *
 * @throws NodeError with the error text of go-ipfs
 */
export const canonicalCbor = (bytes: Uint8Array): Uint8Array => atOnce(canonicalCborSteps(bytes));

/** Same as `canonicalCbor`, in steps. */
export function* canonicalCborSteps(bytes: Uint8Array): Steps<Uint8Array> {
  const { length, canonical } = yield* visitCborSteps(bytes, {});
  return canonical ? bytes.subarray(0, length) : yield* encodeCborSteps(yield* decodeCborSteps(bytes));
}
