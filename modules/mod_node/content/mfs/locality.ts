/** Calculates how much of a DAG is on this machine, for `files/stat`. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { CidNumberMap } from "../../formats/cid/set.ts";
import { linksOf } from "../../formats/ipld/links.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";

export interface Locality {
  /** Whether all of it is on this machine. */
  readonly whole: boolean;
  /** Bytes that are on this machine. A block that occurs twice counts twice. */
  readonly size: number;
}

/** A block whose links are being visited. */
interface VisitedBlock {
  readonly cid: CID;
  readonly links: readonly CID[];
  at: number;
  whole: boolean;
  size: number;
}

/** Number of links after which other work of the process gets its turn. */
const TURN_STEPS = 256;

/**
 * Reads each block once, however often it is linked. Once a block is finished, only its result
 * stays in memory.
 */
export async function localityOf(blocks: BlockService, root: CID, signal: AbortSignal | undefined): Promise<Locality> {
  const known = new Results();
  const stack: VisitedBlock[] = [];
  let result: Locality = { whole: true, size: 0 };

  /** Returns the result for a block, or undefined if its links must be visited first. */
  const enter = async (cid: CID): Promise<Locality | undefined> => {
    if (cid.code === raw) {
      const size = await blocks.size(cid);
      return { whole: size !== undefined, size: size ?? 0 };
    }
    const before = known.get(cid);
    if (before !== undefined) return before;
    const bytes = await blocks.find(cid);
    if (bytes === undefined) return { whole: false, size: 0 };
    stack.push({ cid, links: linksOf(cid, bytes), at: 0, whole: true, size: bytes.length });
    return undefined;
  };

  const first = await enter(root);
  if (first !== undefined) return first;
  for (let level = stack.at(-1), steps = 1; level !== undefined; level = stack.at(-1), steps += 1) {
    // Lets the event loop run, so that a disconnection of the client is noticed.
    if (steps % TURN_STEPS === 0) await nextTurn();
    signal?.throwIfAborted();
    const link = level.links[level.at];
    const below = link === undefined ? undefined : await enter(link);
    if (link !== undefined) {
      // Without a result, `enter` is called for this link again when its own links are done. Its
      // result is known then.
      if (below === undefined) continue;
      level.at += 1;
      level.whole &&= below.whole;
      level.size += below.size;
      continue;
    }
    stack.pop();
    result = { whole: level.whole, size: level.size };
    known.set(level.cid, result);
  }
  return result;
}

/** Stores results by CID, in little memory. */
class Results {
  readonly #indexes = new CidNumberMap();
  readonly #sizes: number[] = [];

  get(cid: CID): Locality | undefined {
    const index = this.#indexes.get(cid);
    if (index === undefined) return undefined;
    const size = this.#sizes[index] as number;
    // The size of an incomplete DAG is stored as a negative number: -size - 1.
    return size < 0 ? { whole: false, size: -size - 1 } : { whole: true, size };
  }

  set(cid: CID, { whole, size }: Locality): void {
    this.#indexes.set(cid, this.#sizes.length);
    this.#sizes.push(whole ? size : -size - 1);
  }
}
