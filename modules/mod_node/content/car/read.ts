/**
 * Reads archives ("CARv1 specification", "CARv2 specification") as they arrive. Only an incomplete
 * section stays in memory.
 */

import { CID } from "multiformats/cid";
import { allocUnsafe, type BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { ownBytes } from "../../util/own_bytes.ts";
import { faultOf, lengthAt } from "./lengths.ts";
import { type CarRules, openPayload, SourceBytes } from "./payload.ts";

export interface CarPart {
  /** Only defined in the first part. */
  readonly roots: readonly CID[] | undefined;
  /** Blocks in the order of the archive. They are not checked against their CIDs. */
  readonly blocks: readonly Block[];
}

/**
 * Yields sections as they are complete; the sections that one piece of the source completes come
 * together. Blocks are copies, in `buffers` if given: the consumer calls the `release` of each
 * block.
 *
 * @throws NodeError with the reference's text, after the parts before it
 */
export async function* readCar(
  source: AsyncIterable<Uint8Array>,
  buffers?: BufferPool,
  rules: CarRules = "0.43",
): AsyncGenerator<CarPart, void, undefined> {
  const bytes = new SourceBytes(source);
  try {
    const { roots, pieces } = await openPayload(bytes, rules);
    yield { roots, blocks: [] };
    const sections = new Sections(buffers);
    let last: CID | undefined;
    try {
      for await (const piece of pieces) {
        const whole = sections.push(piece);
        const blocks: Block[] = [];
        for (const section of whole) {
          const block = blockIn(section);
          blocks.push(block);
          last = block.cid;
        }
        if (blocks.length > 0) yield { roots: undefined, blocks };
        sections.check();
      }
      sections.end();
    } catch (error) {
      throw brokenAfter(last, error);
    }
  } finally {
    await bytes.close();
  }
}

/** Returns the error that names the last intact block before the fault. */
export function brokenAfter(last: CID | undefined, error: unknown): unknown {
  if (!(error instanceof NodeError)) return error;
  const position = last === undefined ? "" : ` after block "${last}"`;
  return failure("ARCHIVE_BROKEN", { reason: error.message, position }, error);
}

type CarSection = Pick<Block, "bytes" | "release">;

/** Splits pieces into sections. A section is a varint and that many bytes. */
class Sections {
  readonly #buffers: BufferPool | undefined;
  /** The beginning of a varint whose rest has not arrived. */
  #head = new Uint8Array();
  /** A section whose rest has not arrived, and the number of bytes that have. */
  #body: Uint8Array | undefined;
  #filled = 0;
  #fault: NodeError | undefined;

  constructor(buffers: BufferPool | undefined) {
    this.#buffers = buffers;
  }

  /** Returns the sections that this piece completes. No part of the piece is retained. */
  push(piece: Uint8Array): CarSection[] {
    const found: CarSection[] = [];
    const rest = this.#fill(piece, found);
    if (rest.length === 0) return found;
    const bytes = this.#head.length === 0 ? rest : Buffer.concat([this.#head, rest]);
    this.#head = this.#head.subarray(0, 0);
    const whole: (readonly [from: number, to: number])[] = [];
    for (let at = 0; at < bytes.length; ) {
      const next = lengthAt(bytes, at);
      if (next === undefined) {
        this.#head = ownBytes(bytes.subarray(at));
        break;
      }
      const [length, from] = next;
      this.#fault = faultOf(length);
      if (this.#fault !== undefined) break;
      at = from + length;
      if (at <= bytes.length) whole.push([from, at]);
      else this.#begin(length, bytes.subarray(from));
    }
    return found.concat(this.#copies(bytes, whole));
  }

  /** Continues the incomplete section and returns the rest of the piece. */
  #fill(piece: Uint8Array, found: CarSection[]): Uint8Array {
    const body = this.#body;
    if (body === undefined) return piece;
    const taken = Math.min(piece.length, body.length - this.#filled);
    body.set(piece.subarray(0, taken), this.#filled);
    this.#filled += taken;
    if (this.#filled === body.length) {
      found.push({ bytes: body, release: () => this.#buffers?.release(body) });
      this.#body = undefined;
    }
    return piece.subarray(taken);
  }

  #begin(length: number, start: Uint8Array): void {
    this.#body = this.#take(length);
    this.#body.set(start);
    this.#filled = start.length;
  }

  /** Copies all sections of a piece into one buffer. */
  #copies(bytes: Uint8Array, whole: readonly (readonly [from: number, to: number])[]): CarSection[] {
    const from = whole[0]?.[0] ?? 0;
    const to = whole.at(-1)?.[1] ?? 0;
    const copy = this.#take(to - from);
    copy.set(bytes.subarray(from, to));
    let inUse = whole.length;
    const release = () => {
      inUse -= 1;
      if (inUse === 0) this.#buffers?.release(copy);
    };
    return whole.map((at) => ({ bytes: copy.subarray(at[0] - from, at[1] - from), release }));
  }

  #take(length: number): Uint8Array {
    return this.#buffers?.take(length) ?? allocUnsafe(length);
  }

  /** To be called after the sections before the fault were consumed. */
  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** @throws NodeError when the last section is incomplete */
  end(): void {
    this.check();
    if (this.#head.length > 0 || this.#body !== undefined) throw failure("CAR_INVALID", { reason: "unexpected EOF" });
  }
}

const isVersion0 = (bytes: Uint8Array): boolean => bytes[0] === 0x12 && bytes[1] === 0x20;

/** The CID gets its own bytes, because it lives longer than the bytes of the block. */
function blockIn({ bytes, release }: CarSection): Block {
  if (bytes.length < 2) throw failure("CAR_INVALID", { reason: "unexpected EOF" });
  if (bytes[0] !== 1 && !isVersion0(bytes)) throw failure("CAR_INVALID", { reason: "invalid cid version number" });
  try {
    const { size } = CID.inspectBytes(bytes);
    return { cid: CID.decode(ownBytes(bytes.subarray(0, size))), bytes: bytes.subarray(size), release };
  } catch (error) {
    throw failure("CAR_INVALID", { reason: "unexpected EOF" }, error);
  }
}
