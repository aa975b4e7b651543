/** Reads and writes protobuf messages field by field ("Protocol Buffers encoding"). */
import { failure } from "../../util/errors.ts";
import { varintLength, writeVarint } from "./varint.ts";

const empty = new Uint8Array();

/** Wire types, as the "Protocol Buffers encoding" page numbers them. */
export const wireVarint = 0;
const wireFixed64 = 1;
export const wireBytes = 2;
const wireGroup = 3;
const wireGroupEnd = 4;
export const wireFixed32 = 5;

/**
 * Describes the fields of a message. A reader with such a description rejects fields of another
 * wire type, with the error text of go-ipfs.
 */
export interface Message {
  readonly name: string;
  /** Name and wire type of each field, by field number. */
  readonly fields: Readonly<Record<number, readonly [name: string, wire: number]>>;
}

/** Reads the fields of a message one after another, without copying them. */
export class FieldReader {
  readonly #bytes: Uint8Array;
  readonly #message: Message | undefined;
  #at = 0;
  /** The number of the field that was read last. */
  field = 0;
  /** The value of a varint field. It is exact up to 2^53; use `integer` for larger values. */
  number = 0;
  #valueAt = 0;
  #wire = wireVarint;

  constructor(bytes: Uint8Array, message?: Message) {
    this.#bytes = bytes;
    this.#message = message;
  }

  /** The value of a length-delimited field, as a view of the message. Empty for any other field. */
  get bytes(): Uint8Array {
    if (this.#wire !== wireBytes || this.#valueAt === this.#at) return empty;
    return this.#bytes.subarray(this.#valueAt, this.#at);
  }

  /** Offset of the end of the field that was read last. */
  get end(): number {
    return this.#at;
  }

  /**
   * Reads the next field; returns false at the end.
   *
   * @throws NodeError if the message is malformed
   */
  next(): boolean {
    if (this.#at >= this.#bytes.length) return false;
    const tag = this.#varint();
    this.field = Math.floor(tag / 8);
    const wire = tag % 8;
    this.#check(wire);
    this.#wire = wire;
    this.number = 0;
    const length = wire === wireBytes ? this.#varint() : 0;
    this.#valueAt = this.#at;
    if (wire === wireVarint) this.number = this.#varint();
    else if (wire === wireBytes) this.#pass(length);
    else this.#skip(wire);
    return true;
  }

  /** The varint of the last field, as an unsigned 64-bit integer. */
  get integer(): bigint {
    let value = 0n;
    let shift = 0n;
    for (let at = this.#valueAt; ; at += 1, shift += 7n) {
      const byte = this.#bytes[at] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
  }

  /** The value of a field of four bytes; 0 for any other field. */
  get fixed32(): number {
    if (this.#wire !== wireFixed32) return 0;
    const { buffer, byteOffset } = this.#bytes;
    return new DataView(buffer, byteOffset + this.#valueAt, 4).getUint32(0, true);
  }

  #check(wire: number): void {
    const prefix = this.#message === undefined ? "proto:" : `proto: ${this.#message.name}:`;
    if (wire === wireGroupEnd)
      throw failure("PROTOBUF_INVALID", { reason: `${prefix} wiretype end group for non-group` });
    if (this.field === 0) throw failure("PROTOBUF_INVALID", { reason: `${prefix} illegal tag 0 (wire type ${wire})` });
    const [name, expected = wire] = this.#message?.fields[this.field] ?? [];
    if (wire !== expected)
      throw failure("PROTOBUF_INVALID", { reason: `proto: wrong wireType = ${wire} for field ${name}` });
  }

  /** Skips a field of a wire type that no message of ours uses. Groups may be nested. */
  #skip(wire: number): void {
    let depth = 0;
    for (let next = wire; ; next = this.#varint() % 8) {
      if (next === wireFixed64) this.#pass(8);
      else if (next === wireFixed32) this.#pass(4);
      else if (next === wireVarint) this.#varint();
      else if (next === wireBytes) this.#pass(this.#varint());
      else if (next === wireGroup) depth += 1;
      else if (next === wireGroupEnd) depth -= 1;
      else throw failure("PROTOBUF_INVALID", { reason: `proto: illegal wireType ${next}` });
      if (depth === 0) return;
    }
  }

  #varint(): number {
    let value = 0;
    let scale = 1;
    for (let read = 0; read < 10; read += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw failure("PROTOBUF_INVALID", { reason: "unexpected EOF" });
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      // The tenth byte contains only the last of the 64 bits.
      if (read === 9 && byte > 1) break;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw failure("PROTOBUF_INVALID", { reason: "proto: integer overflow" });
  }

  #pass(length: number): void {
    if (length >= 2 ** 63)
      throw failure("PROTOBUF_INVALID", { reason: "proto: negative length found during unmarshaling" });
    const end = this.#at + length;
    if (end > this.#bytes.length) throw failure("PROTOBUF_INVALID", { reason: "unexpected EOF" });
    this.#at = end;
  }
}

/**
 * Returns the byte with which a field begins. It contains the field number, which must be below 16,
 * and the wire type.
 */
export const tagOf = (field: number, wire: number): number => field * 8 + wire;

/** Length in bytes of a length-delimited field with a one-byte tag. */
export const fieldLength = (length: number): number => 1 + varintLength(length) + length;

/** Writes a length-delimited field and returns the offset after it. */
export function writeField(into: Uint8Array, at: number, tag: number, value: Uint8Array): number {
  into[at] = tag;
  const from = writeVarint(into, at + 1, value.length);
  into.set(value, from);
  return from + value.length;
}
