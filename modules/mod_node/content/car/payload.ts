/**
 * Finds the sections of an archive. In version 1 they follow the header ("CARv1 specification"). In
 * version 2 they are in the payload, which has its own header, may be padded, and may be followed
 * by an index ("CARv2 specification").
 */
import type { CID } from "multiformats/cid";
import { failure } from "../../util/errors.ts";
import { ownBytes } from "../../util/own_bytes.ts";
import { type CarHeader, parseHeader } from "./header.ts";
import { faultOf, lengthAt } from "./lengths.ts";

/**
 * Bytes of the fixed header of version 2, which follows the pragma: 16 bytes of flags and three
 * numbers of 8 bytes.
 */
const HEADER_BYTES = 40;
const FLAG_BYTES = 16;
/** Bytes of the pragma and the fixed header, before which no payload can begin. */
const PAYLOAD_FROM = 51n;
const MAX_VARINT_BYTES = 10;

const cutOff = () => failure("CAR_INVALID", { reason: "unexpected EOF" });

/**
 * The version whose rules apply. go-ipfs 0.9 reads version 1 only, and requires roots. Kubo 0.43
 * reads version 2 as well, and rejects dag-cbor that is not strict. Both read an empty file as an
 * archive without blocks.
 */
export type CarRules = "0.9" | "0.43";

/** The roots and the sections of an archive. */
export interface CarPayload {
  readonly roots: readonly CID[];
  /**
   * The bytes of the sections, in arbitrary pieces. Each piece is valid until the next one is
   * requested.
   */
  readonly pieces: AsyncIterable<Uint8Array>;
}

/**
 * Opens an archive. @throws NodeError with Kubo's text, or with a text of our own where Kubo
 * reports no error
 */
export async function openPayload(bytes: SourceBytes, rules: CarRules): Promise<CarPayload> {
  if (await bytes.isOver()) return { roots: [], pieces: bytes.rest() };
  const outer = await headerIn(bytes);
  if (rules === "0.9") return { roots: rootsOf(outer), pieces: bytes.rest() };
  if (outer.version === 1) return { roots: outer.roots, pieces: bytes.rest() };
  if (outer.version !== 2) throw wrongVersion(outer);
  const { offset, size } = await payloadRange(bytes);
  await bytes.skip(Number(offset - PAYLOAD_FROM));
  bytes.limit(Number(size));
  const { version, roots } = await headerIn(bytes);
  if (version !== 1)
    throw failure("CAR_INVALID", { reason: `invalid data payload header version; expected 1, got ${version}` });
  return { roots, pieces: bytes.rest() };
}

function rootsOf(header: CarHeader): readonly CID[] {
  if (header.version !== 1) throw wrongVersion(header);
  if (header.roots.length === 0) throw failure("CAR_INVALID", { reason: "empty car, no roots" });
  return header.roots;
}

const wrongVersion = ({ version }: CarHeader) => failure("CAR_INVALID", { reason: `invalid car version: ${version}` });

async function headerIn(bytes: SourceBytes): Promise<CarHeader> {
  const digits: number[] = [];
  while (digits.length < MAX_VARINT_BYTES && ((digits.at(-1) ?? 0x80) & 0x80) !== 0) {
    digits.push((await bytes.take(1))[0] as number);
  }
  const [length] = lengthAt(Uint8Array.from(digits), 0) ?? [Number.POSITIVE_INFINITY];
  const fault = faultOf(length);
  if (fault !== undefined) throw fault;
  return parseHeader(await bytes.take(length));
}

/**
 * Reads offset and size of the payload from the fixed header of version 2. The offset of the index
 * is only checked.
 */
async function payloadRange(bytes: SourceBytes): Promise<{ readonly offset: bigint; readonly size: bigint }> {
  const header = await bytes.take(HEADER_BYTES);
  const view = new DataView(header.buffer, header.byteOffset + FLAG_BYTES);
  const [offset, size, index] = [0, 8, 16].map((at) => view.getBigUint64(at, true)) as [bigint, bigint, bigint];
  if (BigInt.asIntN(64, offset) < PAYLOAD_FROM)
    throw failure("CAR_INVALID", { reason: `invalid data payload offset: ${offset}` });
  if (BigInt.asIntN(64, size) <= 0n) throw failure("CAR_INVALID", { reason: `invalid data payload size: ${size}` });
  if (BigInt.asIntN(64, index) < 0n) throw failure("CAR_INVALID", { reason: `invalid index offset: ${index}` });
  return { offset, size };
}

/** Reads bytes from a source in sequence, and buffers only an incomplete piece. */
export class SourceBytes {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece = new Uint8Array();
  #left = Number.POSITIVE_INFINITY;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Limits the number of bytes that can be read from here on. */
  limit(length: number): void {
    this.#left = length;
  }

  /** Returns a copy of the next bytes. @throws NodeError when fewer bytes are left */
  async take(length: number): Promise<Uint8Array<ArrayBuffer>> {
    // Memory is only allocated for bytes that have arrived, even if the archive announces a great
    // length.
    const parts: Uint8Array[] = [];
    for (let missing = length; missing > 0; ) {
      const part = await this.#next(missing);
      parts.push(ownBytes(part));
      missing -= part.length;
    }
    return new Uint8Array(Buffer.concat(parts));
  }

  /** Skips bytes. @throws NodeError when fewer bytes are left */
  async skip(length: number): Promise<void> {
    for (let missing = length; missing > 0; ) missing -= (await this.#next(missing)).length;
  }

  /**
   * Yields the remaining bytes up to the limit, then reads the source to its end so that the sender
   * can finish.
   */
  async *rest(): AsyncGenerator<Uint8Array, void, undefined> {
    while (this.#left > 0 && (await this.#fill())) yield this.#part(this.#left);
    while (await this.#fill()) this.#piece = new Uint8Array();
  }

  /** Whether no bytes are left. */
  async isOver(): Promise<boolean> {
    return !(await this.#fill());
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #next(most: number): Promise<Uint8Array> {
    if (this.#left === 0 || !(await this.#fill())) throw cutOff();
    return this.#part(Math.min(most, this.#left));
  }

  #part(most: number): Uint8Array {
    const part = this.#piece.subarray(0, most);
    this.#piece = this.#piece.subarray(part.length);
    this.#left -= part.length;
    return part;
  }

  /** Whether any bytes are left. */
  async #fill(): Promise<boolean> {
    while (this.#piece.length === 0) {
      const { done, value } = await this.#source.next();
      if (done === true) return false;
      this.#piece = value as Uint8Array<ArrayBuffer>;
    }
    return true;
  }
}
