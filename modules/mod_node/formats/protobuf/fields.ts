/** Protobuf messages, field by field. */
import { NodeError } from "../../util/errors.ts";
import { varintLength, writeVarint } from "./varint.ts";

const empty = new Uint8Array();

export const wireVarint = 0;
const wireFixed64 = 1;
export const wireBytes = 2;
const wireGroup = 3;
const wireGroupEnd = 4;
const wireFixed32 = 5;

/** What a message is made of: with it, fields of another type are refused in the reference's words. */
export interface Message {
  readonly name: string;
  /** Name and wire type by number. */
  readonly fields: Readonly<Record<number, readonly [name: string, wire: number]>>;
}

/** Protobuf fields of a message, one after the other; no copy is made of any. */
export class FieldReader {
  readonly #bytes: Uint8Array;
  readonly #message: Message | undefined;
  #at = 0;
  /** Of the field read last. */
  field = 0;
  /** Exact up to 2^53; `integer` is exact always. */
  number = 0;
  bytes: Uint8Array = empty;
  #varintAt = 0;

  constructor(bytes: Uint8Array, message?: Message) {
    this.#bytes = bytes;
    this.#message = message;
  }

  /** Reads the next field; false at the end. @throws NodeError when the message is broken */
  next(): boolean {
    if (this.#at >= this.#bytes.length) return false;
    const tag = this.#varint();
    this.field = Math.floor(tag / 8);
    const wire = tag % 8;
    this.#check(wire);
    this.number = 0;
    this.bytes = empty;
    this.#varintAt = this.#at;
    if (wire === wireVarint) this.number = this.#varint();
    else if (wire === wireBytes) this.bytes = this.#take(this.#varint());
    else this.#pass(wire);
    return true;
  }

  /** The varint of the field read last, as 64 bits without a sign. */
  get integer(): bigint {
    let value = 0n;
    let shift = 0n;
    for (let at = this.#varintAt; ; at += 1, shift += 7n) {
      const byte = this.#bytes[at] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
  }

  #check(wire: number): void {
    const prefix = this.#message === undefined ? "proto:" : `proto: ${this.#message.name}:`;
    if (wire === wireGroupEnd) throw new NodeError(`${prefix} wiretype end group for non-group`);
    if (this.field === 0) throw new NodeError(`${prefix} illegal tag 0 (wire type ${wire})`);
    const [name, expected = wire] = this.#message?.fields[this.field] ?? [];
    if (wire !== expected) throw new NodeError(`proto: wrong wireType = ${wire} for field ${name}`);
  }

  /** Passes over a value of a type that no message here has. Groups are within groups. */
  #pass(wire: number): void {
    let depth = 0;
    for (let next = wire; ; next = this.#varint() % 8) {
      if (next === wireFixed64) this.#take(8);
      else if (next === wireFixed32) this.#take(4);
      else if (next === wireVarint) this.#varint();
      else if (next === wireBytes) this.#take(this.#varint());
      else if (next === wireGroup) depth += 1;
      else if (next === wireGroupEnd) depth -= 1;
      else throw new NodeError(`proto: illegal wireType ${next}`);
      if (depth === 0) return;
    }
  }

  #varint(): number {
    let value = 0;
    let scale = 1;
    for (let read = 0; read < 10; read += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new NodeError("unexpected EOF");
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      // The tenth byte has one bit of the 64.
      if (read === 9 && byte > 1) break;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new NodeError("proto: integer overflow");
  }

  #take(length: number): Uint8Array {
    if (length >= 2 ** 63) throw new NodeError("proto: negative length found during unmarshaling");
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new NodeError("unexpected EOF");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}

/** Bytes of a length-delimited field with a one-byte tag. */
export const fieldLength = (length: number): number => 1 + varintLength(length) + length;

/** Writes a length-delimited field and returns the place after it. */
export function writeField(into: Uint8Array, at: number, tag: number, value: Uint8Array): number {
  into[at] = tag;
  const from = writeVarint(into, at + 1, value.length);
  into.set(value, from);
  return from + value.length;
}
