/**
 * Reads CBOR tokens ("RFC 8949") as leniently as refmt, the library of go-ipfs 0.9, and with its
 * error texts; or as strictly as Kubo 0.43. The reader is iterative and allocates no memory for a
 * length that is only announced.
 */
import { failure } from "../../util/errors.ts";

export type CborToken = "map" | "list" | "close" | "text" | "bytes" | "int" | "float" | "true" | "false" | "null";

/** Maximum length in bytes of a text or byte string. */
const MAX_STRING = 33_554_432;
/** Maximum number of pieces of a text or byte string; refmt has no limit. */
const MAX_PIECES = 65_536;
const MAX_INT = 2n ** 63n;
/** Maximum nesting; refmt is limited only by its memory. */
const MAX_DEPTH = 1_000_000;
/** Maximum nesting in strict mode. */
const MAX_STRICT_DEPTH = 1024;

const breakByte = 0xff;
const empty = new Uint8Array();

/** Reads the tokens of one value and ignores what follows it. */
export class CborReader {
  readonly #bytes: Buffer;
  readonly #end: string;
  readonly #strict: boolean;
  /**
   * The number of items to come, for each open container. Keys and values of a map count
   * separately. The number is negative for a container of indefinite length.
   */
  readonly #left: number[] = [];
  readonly #maps: boolean[] = [];
  #at = 0;
  /** Tag of the last token, if it has one. */
  tag: number | undefined;
  /** Content of the last token, if it was a text or byte string. */
  bytes: Uint8Array = empty;
  /** Value of the last token, if it was an integer; a bigint beyond 2^53. */
  int: number | bigint = 0;
  float = 0;
  /** Whether the last token is in canonical form. */
  canonical = true;

  /**
   * `end` is the error text for input that ends too early. `strict` rejects indefinite lengths,
   * integers that are not minimally encoded, NaN, infinities and deep nesting.
   */
  constructor(bytes: Uint8Array, { end = "unexpected EOF", strict = false } = {}) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#end = end;
    this.#strict = strict;
  }

  /** Offset of the next token. */
  get at(): number {
    return this.#at;
  }

  /** Number of open containers. */
  get depth(): number {
    return this.#left.length;
  }

  /** Whether the next token is a key of a map, or the end of that map. */
  get atKey(): boolean {
    const left = this.#left.at(-1);
    return this.#maps.at(-1) === true && (left as number) % 2 === 0;
  }

  /** Must not be called once `depth` is 0 after a token. @throws NodeError */
  next(): CborToken {
    this.tag = undefined;
    this.canonical = true;
    const top = this.#left.length - 1;
    if (top < 0) return this.#item(this.#byte());
    const left = this.#left[top] as number;
    if (left === 0) return this.#close();
    const first = this.#byte();
    if (first === breakByte && left < 0) {
      this.canonical = false;
      if (this.#maps[top] && left % 2 !== 0) {
        throw failure("CBOR_INVALID", { reason: "unexpected break; expected value in indefinite-length map" });
      }
      return this.#close();
    }
    // Containers of indefinite length count down from -2, so that the parity shows whether a key is
    // next.
    this.#left[top] = left - 1;
    return this.#item(first);
  }

  #close(): "close" {
    this.#left.pop();
    this.#maps.pop();
    return "close";
  }

  #item(first: number): CborToken {
    switch (first) {
      case 0xf4:
        return "false";
      case 0xf5:
        return "true";
      case 0xf6:
        return "null";
      case 0xf7:
        this.canonical = false;
        return "null";
      case 0xf9:
      case 0xfa:
      case 0xfb:
        return this.#float(first);
      case 0x5f:
      case 0x7f:
        this.#refuseIfStrict("indefinite-length encoding rejected");
        return this.#pieces(first === 0x5f ? 0x40 : 0x60);
      case 0x9f:
      case 0xbf:
        this.#refuseIfStrict("indefinite-length encoding rejected");
        this.canonical = false;
        return this.#open(first === 0xbf, -2);
    }
    switch (first >> 5) {
      case 0:
        this.int = this.#uint(first);
        return "int";
      case 1:
        return this.#negative(this.#uint(first));
      case 2:
        this.bytes = this.#string(first, "byte");
        return "bytes";
      case 3:
        this.bytes = this.#string(first, "string");
        return "text";
      case 4:
        return this.#open(false, this.#length(first));
      case 5:
        return this.#open(true, this.#length(first) * 2);
      case 6:
        return this.#tagged(first);
    }
    throw failure("CBOR_INVALID", { reason: `${this.#strict ? "i" : "I"}nvalid majorByte: 0x${first.toString(16)}` });
  }

  #refuseIfStrict(reason: string): void {
    if (this.#strict) throw failure("CBOR_INVALID", { reason: `cbor: ${reason}` });
  }

  #open(isMap: boolean, left: number): "map" | "list" {
    if (this.#strict && this.#left.length >= MAX_STRICT_DEPTH) {
      throw failure("CBOR_INVALID", { reason: "message structure exceeded maximum nesting depth" });
    }
    if (this.#left.length >= MAX_DEPTH)
      throw failure("CBOR_INVALID", { reason: `cbor: values are nested deeper than ${MAX_DEPTH} levels` });
    this.#left.push(left);
    this.#maps.push(isMap);
    return isMap ? "map" : "list";
  }

  #tagged(first: number): CborToken {
    if (this.tag !== undefined)
      throw failure("CBOR_INVALID", { reason: "unsupported multiple tags on a single data item" });
    this.tag = this.#length(first);
    return this.#item(this.#byte());
  }

  #negative(below: number | bigint): "int" {
    if (BigInt(below) >= MAX_INT)
      throw failure("CBOR_INVALID", { reason: "cbor: negative integer out of rage of int64 type" });
    this.int = typeof below === "bigint" ? -1n - below : -1 - below;
    return "int";
  }

  #float(first: number): "float" {
    this.canonical = first === 0xfb;
    if (first === 0xfb) this.float = this.#take(8).readDoubleBE();
    else if (first === 0xfa) this.float = this.#take(4).readFloatBE();
    else this.float = halfFloat(this.#take(2).readUInt16BE());
    if (Number.isNaN(this.float)) this.#refuseIfStrict("NaN float value rejected");
    else if (!Number.isFinite(this.float)) this.#refuseIfStrict("infinite float value rejected");
    return "float";
  }

  /** Reads a string that comes in pieces. */
  #pieces(major: number): "text" | "bytes" {
    const pieces: Uint8Array[] = [];
    for (let first = this.#byte(); first !== breakByte; first = this.#byte()) {
      if ((first & 0xe0) !== major) {
        const got = `${first & 0xe0}, byte: ${first}`;
        throw failure("CBOR_INVALID", {
          reason: `cbor: expect bytes or string major type in indefinite string/bytes; got: ${got}`,
        });
      }
      // Empty pieces add no content, and views of them would cost more than the other pieces.
      if (first === major) continue;
      const piece = this.#string(first, "indefinite string/bytes");
      if (pieces.length === MAX_PIECES)
        throw failure("CBOR_INVALID", { reason: `cbor: a string in more than ${MAX_PIECES} pieces` });
      pieces.push(piece);
    }
    this.canonical = false;
    this.bytes = Buffer.concat(pieces);
    return major === 0x40 ? "bytes" : "text";
  }

  #string(first: number, kind: string): Uint8Array {
    const length = this.#exactLength(first);
    if (length > MAX_STRING) {
      throw failure("CBOR_INVALID", {
        reason: `cbor: decoding rejected oversized ${kind} field: ${length} is too large`,
      });
    }
    return this.#take(Number(length));
  }

  #length(first: number): number {
    return Number(this.#exactLength(first));
  }

  #exactLength(first: number): number | bigint {
    const length = this.#uint(first);
    if (length >= MAX_INT) throw failure("CBOR_INVALID", { reason: "cbor: positive integer is out of length" });
    return length;
  }

  #uint(first: number): number | bigint {
    const low = first & 0x1f;
    if (low < 24) return low;
    if (low > 27) throw failure("CBOR_INVALID", { reason: `decodeUint: Invalid descriptor: ${first}` });
    const value = low === 24 ? this.#byte() : this.#wide(this.#take(1 << (low - 24)));
    if (value < (minimumOfWidth[low - 24] as number)) {
      this.#refuseIfStrict("integer not minimally encoded");
      this.canonical = false;
    }
    return value;
  }

  #wide(bytes: Buffer): number | bigint {
    if (bytes.length < 8) return bytes.readUIntBE(0, bytes.length);
    const value = bytes.readBigUInt64BE();
    return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw failure("CBOR_INVALID", { reason: this.#end });
    this.#at += 1;
    return byte;
  }

  #take(length: number): Buffer {
    const left = this.#bytes.length - this.#at;
    if (length > left) throw failure("CBOR_INVALID", { reason: left === 0 ? this.#end : "unexpected EOF" });
    const taken = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return taken;
  }
}

/** The smallest values that need one, two, four and eight bytes. */
const minimumOfWidth = [24, 0x100, 0x10000, 0x100000000];

function halfFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 0x1f) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}
