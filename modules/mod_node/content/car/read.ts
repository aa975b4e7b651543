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
  /** Of the first part only. */
  readonly roots: readonly CID[] | undefined;
  /** In their order; not checked against their CIDs. */
  readonly blocks: readonly Block[];
}

/**
 * Gives sections as they are complete, those of one piece of the source together. Blocks are
 * copies, in `buffers` if given: whoever gets a block calls its `release`.
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

/** The error that names the last intact block before the fault. */
export function brokenAfter(last: CID | undefined, error: unknown): unknown {
  if (!(error instanceof NodeError)) return error;
  const place = last === undefined ? "" : ` after block "${last}"`;
  return failure("ARCHIVE_BROKEN", { reason: error.message, place }, error);
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
  #fault: NodeError | undefined;

  constructor(buffers: BufferPool | undefined) {
    this.#buffers = buffers;
  }

  /** The sections that this piece completes; nothing of the piece is kept. */
  push(piece: Uint8Array): Section[] {
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

  /** @throws NodeError when the last section is incomplete */
  end(): void {
    this.check();
    if (this.#head.length > 0 || this.#body !== undefined) throw failure("CAR_INVALID", { reason: "unexpected EOF" });
  }
}

const isVersion0 = (bytes: Uint8Array): boolean => bytes[0] === 0x12 && bytes[1] === 0x20;

/** The CID gets bytes of its own, which are needed longer than those of the block. */
function blockIn({ bytes, release }: Section): Block {
  if (bytes.length < 2) throw failure("CAR_INVALID", { reason: "unexpected EOF" });
  if (bytes[0] !== 1 && !isVersion0(bytes)) throw failure("CAR_INVALID", { reason: "invalid cid version number" });
  try {
    const { size } = CID.inspectBytes(bytes);
    return { cid: CID.decode(ownBytes(bytes.subarray(0, size))), bytes: bytes.subarray(size), release };
  } catch (error) {
    throw failure("CAR_INVALID", { reason: "unexpected EOF" }, error);
  }
}
