/** Walks DAGs: depth first, parents before children, links in order, without recursion. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { CidSet } from "../../formats/cid/set.ts";
import { linksWithTurns } from "../../formats/ipld/links.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { NodeError } from "../../util/errors.ts";
import { Readahead } from "./readahead.ts";

export interface WalkOptions {
  /** Reads one block; what it throws ends the walk. */
  readonly read: (cid: CID) => Promise<Uint8Array>;
  /** CIDs in this set are neither read nor walked; share it between walks to walk their union. */
  readonly seen?: CidSet | undefined;
  /** Do not read blocks whose codec has no links: their `bytes` are undefined. Default false. */
  readonly skipLeaves?: boolean | undefined;
  /** Treat malformed blocks as having no links, instead of ending the walk. Default false. */
  readonly lenient?: boolean | undefined;
  /** Called for missing and malformed blocks, which then do not end the walk. */
  readonly failed?: ((cid: CID, error: NodeError) => void) | undefined;
  /** Blocks that are requested ahead. */
  readonly readahead?: number | undefined;
  /** The pool that `read` takes its buffers from: a block with links is not returned to it. */
  readonly buffers?: BufferPool | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WalkedBlock {
  readonly cid: CID;
  /** Undefined only with `skipLeaves`. */
  readonly bytes: Uint8Array | undefined;
}

const DEFAULT_READAHEAD = 8;
/** At least this many blocks are requested together: neighbours in the store are then read in one go. */
const MIN_READAHEAD_BATCH = 4;
/** Links after which other work of the process gets its turn. */
const TURN_STEPS = 1024;

/** Every block of the DAG below `root`, which comes first, each once. */
export async function* walk(root: CID, options: WalkOptions): AsyncGenerator<WalkedBlock, void, undefined> {
  const {
    read,
    seen = new CidSet(),
    skipLeaves = false,
    lenient = false,
    readahead = DEFAULT_READAHEAD,
    failed,
    buffers,
    signal,
  } = options;
  const wanted = (cid: CID) => !(skipLeaves && cid.code === raw);
  const stack: CID[] = [root];
  const asked = new Readahead<CID, Uint8Array>(({ length }) => length);

  /** A block that is linked several times is requested once. */
  const isAsked = (cid: CID): boolean => {
    if (asked.has(cid)) return true;
    for (const other of asked.keys()) if (other.equals(cid)) return true;
    return false;
  };

  function requestAhead(): void {
    for (let at = stack.length - 1; at >= 0 && stack.length - at <= readahead; at -= 1) {
      const next = stack[at] as CID;
      if (!wanted(next) || seen.has(next) || isAsked(next)) continue;
      if (!asked.ask(next, 0, () => read(next))) return;
    }
  }

  try {
    for (let cid = stack.pop(), steps = 1; cid !== undefined; cid = stack.pop(), steps += 1) {
      // Whoever leaves is heard, also when all blocks are in memory.
      if (steps % TURN_STEPS === 0) await nextTurn();
      signal?.throwIfAborted();
      const reading = asked.take(cid);
      if (!seen.add(cid)) continue;
      if (!wanted(cid)) {
        yield { cid, bytes: undefined };
        continue;
      }
      const own = reading ?? read(cid);
      if (asked.size <= Math.max(0, readahead - MIN_READAHEAD_BATCH)) requestAhead();
      let links: readonly CID[] = [];
      try {
        const bytes = await own;
        const sought = linksIn(cid, bytes);
        const found = sought instanceof Promise ? await sought.catch(orFault) : sought;
        if (found instanceof NodeError) {
          yield { cid, bytes };
          if (!lenient) throw found;
        } else {
          links = found;
          const [first] = links;
          if (first !== undefined) buffers?.retain(first.multihash.bytes);
          yield { cid, bytes };
        }
      } catch (error) {
        if (failed === undefined || !(error instanceof NodeError)) throw error;
        failed(cid, error);
      }
      for (let at = links.length - 1; at >= 0; at -= 1) stack.push(links[at] as CID);
    }
  } finally {
    asked.end();
  }
}

/** The links, or why there are none. */
function linksIn(cid: CID, bytes: Uint8Array): readonly CID[] | NodeError | Promise<readonly CID[]> {
  try {
    return linksWithTurns(cid, bytes);
  } catch (error) {
    return orFault(error);
  }
}

function orFault(error: unknown): NodeError {
  if (error instanceof NodeError) return error;
  throw error;
}
