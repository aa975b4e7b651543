/** Archives of blocks (CAR, version 1) as they come: nothing is held but the section that is not whole yet. */
import { CID } from "multiformats/cid";
import type { Block } from "../blocks/store.ts";
import { NodeError } from "../errors.ts";
import { readHeader } from "./header.ts";

/** Bytes of the longest section: more than any block that travels, and what one upload may make this node hold. */
const longestSection = 128 * 1024 * 1024;

export interface CarPart {
  /** Only of the first part. */
  readonly roots: readonly CID[] | undefined;
  /** In their order; not checked against their CIDs. */
  readonly blocks: readonly Block[];
}

/**
 * Sections as they are complete, those of one piece of the source together. Blocks are views of what the source gave,
 * or copies where they came in several pieces.
 *
 * @throws NodeError with the reference's text, after the parts before it
 */
export async function* readCar(source: AsyncIterable<Uint8Array>): AsyncGenerator<CarPart, void, undefined> {
  const sections = new Sections();
  let begun = false;
  for await (const piece of source) {
    const whole = sections.push(piece);
    const [first] = whole;
    if (first !== undefined) {
      const roots = begun ? undefined : readHeader(first);
      yield { roots, blocks: (begun ? whole : whole.slice(1)).map(blockIn) };
      begun = true;
    }
    sections.check();
  }
  sections.end();
}

/** Cuts pieces into sections: each is a varint and so many bytes. */
class Sections {
  #pieces: Uint8Array[] = [];
  #held = 0;
  #needed = 1;
  #begun = false;
  #fault: NodeError | undefined;

  /** What is whole with this piece. */
  push(piece: Uint8Array): Uint8Array[] {
    this.#pieces.push(piece);
    this.#held += piece.length;
    this.#begun ||= piece.length > 0;
    if (this.#held < this.#needed) return [];
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    const found: Uint8Array[] = [];
    let at = 0;
    while (at < bytes.length) {
      const head = lengthAt(bytes, at);
      if (head === undefined) {
        this.#needed = bytes.length - at + 1;
        break;
      }
      const [length, from] = head;
      if (length > longestSection) {
        const reason = `a section of ${length} bytes is longer than ${longestSection}`;
        this.#fault = Number.isFinite(length)
          ? new NodeError(`invalid car: ${reason}`)
          : new NodeError("binary: varint overflows a 64-bit integer");
        break;
      }
      this.#needed = from - at + length;
      if (from + length > bytes.length) break;
      found.push(bytes.subarray(from, from + length));
      at = from + length;
      this.#needed = 1;
    }
    this.#pieces = at < bytes.length ? [bytes.subarray(at)] : [];
    this.#held = bytes.length - at;
    return found;
  }

  /** To be called when what came before the fault has been taken. */
  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** @throws NodeError when there is nothing, or a section that is not whole */
  end(): void {
    this.check();
    if (!this.#begun || this.#held > 0) throw new NodeError("unexpected EOF");
  }
}

/** A varint and the place behind it; infinite beyond 64 bits, undefined when it is cut off. */
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

function blockIn(section: Uint8Array): Block {
  if (section.length < 2) throw new NodeError("unexpected EOF");
  if (section[0] !== 1 && !isVersion0(section)) throw new NodeError("invalid cid version number");
  try {
    const [cid, bytes] = CID.decodeFirst(section);
    return { cid, bytes };
  } catch (error) {
    throw new NodeError("unexpected EOF", { cause: error });
  }
}
