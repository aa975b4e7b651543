/** Blocks that were read a moment ago and are small: what is asked for again and again is not read from the disk each time. */

import type { CID } from "multiformats/cid";
import { ownBytes } from "../../../util/own_bytes.ts";
import { type BytesLocation, type Position, positionAt } from "./format.ts";

interface RecentBlock {
  /** It is nobody else's block, whatever an index says. */
  readonly multihash: Uint8Array;
  readonly bytes: Uint8Array;
  readonly read: number;
}

const MAX_BYTES = 512 * 1024;
/** Milliseconds; damage on the disk is noticed at most that late. */
const MAX_AGE_MS = 1000;

const positionOf = ({ segment, offset }: BytesLocation): Position => positionAt(segment, offset);

/** By location, whose bytes never change. The bytes were checked when they were read, and belong to no pool. */
export class RecentBlocks {
  readonly #blocks = new Map<Position, RecentBlock>();
  #bytes = 0;

  get({ multihash }: CID, location: BytesLocation): Uint8Array | undefined {
    const recent = this.#blocks.get(positionOf(location));
    if (recent === undefined || performance.now() - recent.read > MAX_AGE_MS) return undefined;
    return Buffer.compare(recent.multihash, multihash.bytes) === 0 ? recent.bytes : undefined;
  }

  /** The oldest make room for it. */
  add({ multihash }: CID, location: BytesLocation, bytes: Uint8Array): void {
    const position = positionOf(location);
    this.#drop(position);
    // A part of a larger array would keep all of that; so would a view of a link that a CID may be.
    const own = bytes.length === bytes.buffer.byteLength ? bytes : ownBytes(bytes);
    this.#blocks.set(position, { multihash: ownBytes(multihash.bytes), bytes: own, read: performance.now() });
    this.#bytes += heldBy(own);
    for (const oldest of this.#blocks.keys()) {
      if (this.#bytes <= MAX_BYTES) break;
      this.#drop(oldest);
    }
  }

  #drop(position: Position): void {
    const recent = this.#blocks.get(position);
    if (recent === undefined) return;
    this.#blocks.delete(position);
    this.#bytes -= heldBy(recent.bytes);
  }
}

/** What it takes to keep a block, besides its bytes. */
const ENTRY_BYTES = 256;
const heldBy = ({ length }: Uint8Array): number => length + ENTRY_BYTES;
