/**
 * Small blocks that were read a moment ago, so that frequently requested blocks are not read from
 * the disk each time.
 */

import type { CID } from "multiformats/cid";
import { ownBytes } from "../../../util/own_bytes.ts";
import { type BytesLocation, type Position, positionAt } from "./format.ts";

interface RecentBlock {
  /** Protects against an index that returns the location of another block. */
  readonly multihash: Uint8Array;
  readonly bytes: Uint8Array;
  readonly read: number;
}

const MAX_BYTES = 512 * 1024;
/** Maximum age in milliseconds. Damage on the disk is noticed at most this late. */
const MAX_AGE_MS = 1000;

const positionOf = ({ segment, offset }: BytesLocation): Position => positionAt(segment, offset);

/**
 * Blocks by location; the bytes at a location never change. The bytes were checked when they were
 * read, and do not belong to a pool.
 */
export class RecentBlocks {
  readonly #blocks = new Map<Position, RecentBlock>();
  #bytes = 0;

  get({ multihash }: CID, location: BytesLocation): Uint8Array | undefined {
    const recent = this.#blocks.get(positionOf(location));
    if (recent === undefined || performance.now() - recent.read > MAX_AGE_MS) return undefined;
    return Buffer.compare(recent.multihash, multihash.bytes) === 0 ? recent.bytes : undefined;
  }

  /** Adds a block and evicts the oldest ones. */
  add({ multihash }: CID, location: BytesLocation, bytes: Uint8Array): void {
    const position = positionOf(location);
    this.#drop(position);
    // A view would retain the whole array behind it. The CID may be a view of a link as well.
    const own = bytes.length === bytes.buffer.byteLength ? bytes : ownBytes(bytes);
    this.#blocks.set(position, { multihash: ownBytes(multihash.bytes), bytes: own, read: performance.now() });
    this.#bytes += sizeOf(own);
    for (const oldest of this.#blocks.keys()) {
      if (this.#bytes <= MAX_BYTES) break;
      this.#drop(oldest);
    }
  }

  #drop(position: Position): void {
    const recent = this.#blocks.get(position);
    if (recent === undefined) return;
    this.#blocks.delete(position);
    this.#bytes -= sizeOf(recent.bytes);
  }
}

/** Memory for the entry of a block in addition to its bytes. */
const ENTRY_BYTES = 256;
const sizeOf = ({ length }: Uint8Array): number => length + ENTRY_BYTES;
