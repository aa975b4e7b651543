/** Reads archives ("CARv1 specification") as they come: only an incomplete section is held in memory. */

import { CID } from "multiformats/cid";
import { allocUnsafe, type BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { MAX_BLOCK } from "../../storage/blockstore/make_block.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { NodeError } from "../../util/errors.ts";
import { ownBytes } from "../../util/own_bytes.ts";
import { readHeader } from "./header.ts";

export interface CarPart {
  /** Of the first part only. */
  readonly roots: readonly CID[] | undefined;
  /** In their order; not checked against their CIDs. */
  readonly blocks: readonly Block[];
}

/**
 * Gives sections as they are complete, those of one piece of the source together. Blocks are copies, in `buffers` if
 * given: whoever gets a block calls its `release`.
 *
 * @throws NodeError with the reference's text, after the parts before it
 */
export async function* readCar(
  source: AsyncIterable<Uint8Array>,
  buffers?: BufferPool,
): AsyncGenerator<CarPart, void, undefined> {
  const sections = new Sections(buffers);
  let begun = false;
  for await (const piece of source) {
    const whole = sections.push(piece);
    const header = begun ? undefined : whole.shift();
    if (header !== undefined) {
      // A copy: the CIDs of the roots are views of it.
      const roots = readHeader(ownBytes(header.bytes));
      header.release?.();
      begun = true;
      yield { roots, blocks: whole.map(blockIn) };
    } else if (whole.length > 0) {
      yield { roots: undefined, blocks: whole.map(blockIn) };
    }
    sections.check();
  }
  sections.end();
}

type Section = Pick<Block, "bytes" | "release">;

/** Cuts pieces into sections, each of which is a varint and that many bytes. */
class Sections {
  readonly #buffers: BufferPool | undefined;
  /** A varint that is cut off. */
  #head = new Uint8Array();
  /** A section that is cut off, and how much of it has come. */
  #body: Uint8Array | undefined;
  #filled = 0;
  #begun = false;
  #fault: NodeError | undefined;

  constructor(buffers: BufferPool | undefined) {
    this.#buffers = buffers;
  }

  /** The sections that this piece completes; nothing of the piece is kept. */
  push(piece: Uint8Array): Section[] {
    this.#begun ||= piece.length > 0;
    const found: Section[] = [];
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

  /** Continues the incomplete section; gives the rest of the piece. */
  #fill(piece: Uint8Array, found: Section[]): Uint8Array {
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

  /** One buffer for all of them. */
  #copies(bytes: Uint8Array, whole: readonly (readonly [from: number, to: number])[]): Section[] {
    const from = whole[0]?.[0] ?? 0;
    const to = whole.at(-1)?.[1] ?? 0;
    const copy = this.#take(to - from);
    copy.set(bytes.subarray(from, to));
    let held = whole.length;
    const release = () => {
      held -= 1;
      if (held === 0) this.#buffers?.release(copy);
    };
    return whole.map((at) => ({ bytes: copy.subarray(at[0] - from, at[1] - from), release }));
  }

  #take(length: number): Uint8Array {
    return this.#buffers?.take(length) ?? allocUnsafe(length);
  }

  /** To be called once the sections before the fault were taken. */
  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** @throws NodeError when there was nothing, or the last section is incomplete */
  end(): void {
    this.check();
    if (!this.#begun || this.#head.length > 0 || this.#body !== undefined) throw new NodeError("unexpected EOF");
  }
}

function faultOf(length: number): NodeError | undefined {
  if (length <= MAX_BLOCK) return undefined;
  if (!Number.isFinite(length)) return new NodeError("binary: varint overflows a 64-bit integer");
  return new NodeError(`invalid car: a section of ${length} bytes is longer than ${MAX_BLOCK}`);
}

/** A varint and the offset after it; infinite beyond 64 bits, undefined when it is cut off. */
function lengthAt(bytes: Uint8Array, start: number): readonly [length: number, from: number] | undefined {
  let length = 0;
  let scale = 1;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (at - start === 9 && byte > 1) return [Number.POSITIVE_INFINITY, at];
    length += (byte & 0x7f) * scale;
    if (byte < 0x80) return [length, at + 1];
    scale *= 128;
  }
  return undefined;
}

const isVersion0 = (bytes: Uint8Array): boolean => bytes[0] === 0x12 && bytes[1] === 0x20;

/** The CID gets bytes of its own, which are needed longer than those of the block. */
function blockIn({ bytes, release }: Section): Block {
  if (bytes.length < 2) throw new NodeError("unexpected EOF");
  if (bytes[0] !== 1 && !isVersion0(bytes)) throw new NodeError("invalid cid version number");
  try {
    const { size } = CID.inspectBytes(bytes);
    return { cid: CID.decode(ownBytes(bytes.subarray(0, size))), bytes: bytes.subarray(size), release };
  } catch (error) {
    throw new NodeError("unexpected EOF", { cause: error });
  }
}
