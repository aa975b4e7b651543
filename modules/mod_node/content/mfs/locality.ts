/** Tells how much of a DAG is on this machine, for `files/stat`. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { CidNumberMap } from "../../formats/cid/set.ts";
import { linksOf } from "../../formats/ipld/links.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";

export interface Locality {
  /** All of it is on this machine. */
  readonly whole: boolean;
  /** Bytes that are on this machine; a block that occurs twice counts twice. */
  readonly size: number;
}

/** A block whose links are being looked at. */
interface Level {
  readonly cid: CID;
  readonly links: readonly CID[];
  at: number;
  whole: boolean;
  size: number;
}

/** Links after which other work of the process gets its turn. */
const TURN_STEPS = 256;

/**
 * Each block is read once, however often it is linked, and the blocks on one way down are held. Of
 * each other one with links only the result is kept.
 */
export async function localityOf(blocks: BlockService, root: CID, signal: AbortSignal | undefined): Promise<Locality> {
  const known = new Results();
  const stack: Level[] = [];
  let result: Locality = { whole: true, size: 0 };

  /** The result for a block, or undefined when its links must be looked at first. */
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
    // Whoever leaves is heard, also when all blocks are in memory.
    if (steps % TURN_STEPS === 0) await nextTurn();
    signal?.throwIfAborted();
    const link = level.links[level.at];
    const below = link === undefined ? undefined : await enter(link);
    if (link !== undefined) {
      // Otherwise it is asked for again when its own links are done, and is known then.
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

/** Results by CID, in little memory. */
class Results {
  readonly #places = new CidNumberMap();
  readonly #sizes: number[] = [];

  get(cid: CID): Locality | undefined {
    const place = this.#places.get(cid);
    if (place === undefined) return undefined;
    const size = this.#sizes[place] as number;
    // What is not whole is kept as a negative number: its size less one.
    return size < 0 ? { whole: false, size: -size - 1 } : { whole: true, size };
  }

  set(cid: CID, { whole, size }: Locality): void {
    this.#places.set(cid, this.#sizes.length);
    this.#sizes.push(whole ? size : -size - 1);
  }
}
