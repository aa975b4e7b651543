/**
 * A cache of nodes that were read a moment ago: whoever reads a file in many ranges needs its interior nodes each time.
 */
import type { CID } from "multiformats/cid";
import { dagPb } from "../../../formats/cid/codecs.ts";
import { NODE_LINKS_TAG } from "../../../formats/dag_pb/field_numbers.ts";
import { type BlockLocation, type Position, positionAt } from "./format.ts";

interface CachedNode {
  readonly bytes: Uint8Array;
  readonly read: number;
}

const MAX_NODE = 64 * 1024;
const MAX_BYTES = 512 * 1024;
/** Milliseconds; damage on the disk is noticed at most that late. */
const MAX_AGE_MS = 1000;

const positionOf = ({ segment, offset }: BlockLocation): Position => positionAt(segment, offset);

/** By location, whose bytes never change. The bytes were checked when they were read, and belong to no pool. */
export class NodeCache {
  readonly #nodes = new Map<Position, CachedNode>();
  #bytes = 0;

  /** Whether a block is of the kind that is cached. */
  accepts(cid: CID, { length }: BlockLocation): boolean {
    return cid.code === dagPb && length <= MAX_NODE;
  }

  get(location: BlockLocation): Uint8Array | undefined {
    const recent = this.#nodes.get(positionOf(location));
    return recent !== undefined && performance.now() - recent.read <= MAX_AGE_MS ? recent.bytes : undefined;
  }

  add(location: BlockLocation, bytes: Uint8Array): void {
    // Links stand first in a node that has any.
    if (bytes[0] !== NODE_LINKS_TAG) return;
    const position = positionOf(location);
    this.#drop(position);
    this.#nodes.set(position, { bytes, read: performance.now() });
    this.#bytes += bytes.length;
    for (const oldest of this.#nodes.keys()) {
      if (this.#bytes <= MAX_BYTES) break;
      this.#drop(oldest);
    }
  }

  #drop(position: Position): void {
    const recent = this.#nodes.get(position);
    if (recent === undefined) return;
    this.#nodes.delete(position);
    this.#bytes -= recent.bytes.length;
  }
}
