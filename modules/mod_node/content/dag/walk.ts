/** Walks DAGs: depth first, parents before children, links in order, without recursion. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { lasting } from "../../formats/cid/detached.ts";
import { CidSet } from "../../formats/cid/set.ts";
import { linksWithTurns } from "../../formats/ipld/links.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { oneByOne } from "../../util/async/one_by_one.ts";
import { NodeError } from "../../util/errors.ts";
import { Readahead } from "./readahead.ts";
import type { ReadBlock } from "./reader.ts";

export interface WalkOptions {
  /** Reads one block. If it throws, the walk ends. */
  readonly read: ReadBlock;
  /**
   * CIDs in this set are neither read nor walked. Share it between walks to walk their union. A
   * block is added when its links are followed. A missing block is not added, so that a later walk
   * that finds it also walks below it.
   */
  readonly seen?: CidSet | undefined;
  /** Do not read blocks whose codec has no links: their `bytes` are undefined. Default false. */
  readonly skipLeaves?: boolean | undefined;
  /** Treat malformed blocks as having no links, instead of ending the walk. Default false. */
  readonly lenient?: boolean | undefined;
  /** Called for missing and malformed blocks, which then do not end the walk. */
  readonly failed?: ((cid: CID, error: NodeError) => void) | undefined;
  /** Whether a block's links are followed; all are by default. */
  readonly follows?: ((cid: CID, bytes: Uint8Array) => boolean) | undefined;
  /**
   * The pool that `read` takes its buffers from. Small buffers of blocks with links are not
   * returned to it.
   */
  readonly buffers?: BufferPool | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WalkedBlock {
  readonly cid: CID;
  /** Undefined only with `skipLeaves`. */
  readonly bytes: Uint8Array | undefined;
}

/**
 * Maximum readahead: eight blocks, or more small ones up to a number of bytes. They are requested
 * together, so that one read fetches neighbours in the store: when half of the previous ones were
 * used, or all of them if none needed waiting.
 */
const READAHEAD = { blocks: 8, bytes: 256 * 1024, maxBlocks: 64 };
/** Maximum size of a page. The last block may exceed it. */
const PAGE = { blocks: 64, bytes: 64 * 1024 };
/** Number of links after which other work of the process gets its turn. */
const TURN_STEPS = 1024;

/** Walks every block of the DAG, each once. `root` comes first. */
export const walk = (root: CID, options: WalkOptions): AsyncGenerator<WalkedBlock, void, undefined> =>
  oneByOne(walkPages(root, options));

/**
 * Like `walk`, but in pages, because each yield costs a promise. A page is yielded before a block
 * has to be waited for, and before a fault is thrown.
 */
export async function* walkPages(
  root: CID,
  options: WalkOptions,
): AsyncGenerator<readonly WalkedBlock[], void, undefined> {
  const { read, seen = new CidSet(), skipLeaves = false, lenient = false, failed, follows, buffers, signal } = options;
  const wanted = (cid: CID) => !(skipLeaves && cid.code === raw);
  const stack: CID[] = [root];
  // Requested blocks by key: a block that is linked several times is requested once.
  const requested = new Readahead<string, Uint8Array>(({ length }) => length);
  let isAtHand = false;
  const page = new BlockPage();
  /** Missing and malformed blocks, each of which is reported once. */
  const faulty = new CidSet();
  const isMet = (cid: CID) => seen.has(cid) || faulty.has(cid);

  /** Requests the blocks that follow `own`, which is being read. */
  function requestAhead(own: CID): void {
    const small = Math.floor(READAHEAD.bytes / requested.bytesOf(0));
    const most = Math.max(READAHEAD.blocks, Math.min(READAHEAD.maxBlocks, small));
    if (requested.size > (isAtHand ? 0 : most / 2)) return;
    const coming = new Map<string, CID>();
    const ownKey = keyOf(own);
    for (let at = stack.length - 1; at >= 0 && stack.length - at <= most; at -= 1) {
      const next = stack[at] as CID;
      const key = keyOf(next);
      if (wanted(next) && key !== ownKey && !requested.has(key) && !isMet(next)) coming.set(key, next);
    }
    const here = small >= READAHEAD.blocks ? read.peek?.([...coming.values()]) : undefined;
    isAtHand = here !== undefined;
    let at = 0;
    for (const [key, next] of coming) {
      const bytes = here?.[at++];
      if (bytes !== undefined && requested.add(key, bytes)) continue;
      isAtHand = false;
      if (!requested.request(key, 0, () => read(next))) return;
    }
  }

  try {
    for (let cid = stack.pop(), steps = 1; cid !== undefined; cid = stack.pop(), steps += 1) {
      // Lets the event loop run, so that a disconnection of the client is noticed.
      if (steps % TURN_STEPS === 0) await nextTurn();
      signal?.throwIfAborted();
      const reading = requested.size === 0 ? undefined : requested.take(keyOf(cid));
      if (isMet(cid)) continue;
      let links: readonly CID[] = [];
      if (wanted(cid)) {
        const own = reading ?? read(cid);
        requestAhead(cid);
        if (own instanceof Promise) {
          own.catch(() => {});
          if (!page.isEmpty) yield page.take();
        }
        try {
          const bytes = own instanceof Promise ? await own : own;
          const sought = linksIn(cid, bytes);
          const found = sought instanceof Promise ? await sought.catch(orFault) : sought;
          page.add({ cid, bytes });
          if (!(found instanceof NodeError))
            links = follows?.(cid, bytes) === false ? [] : lasting(found, bytes, buffers);
          else if (!lenient) throw found;
          seen.add(cid);
        } catch (error) {
          if (!page.isEmpty) yield page.take();
          if (failed === undefined || !(error instanceof NodeError)) throw error;
          faulty.add(cid);
          failed(cid, error);
        }
      } else {
        seen.add(cid);
        page.add({ cid, bytes: undefined });
      }
      if (page.isFull) yield page.take();
      for (let at = links.length - 1; at >= 0; at -= 1) stack.push(links[at] as CID);
    }
    if (!page.isEmpty) yield page.take();
  } finally {
    requested.end();
  }
}

/** Collects the blocks of one page. */
class BlockPage {
  #blocks: WalkedBlock[] = [];
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#blocks.length === 0;
  }

  get isFull(): boolean {
    return this.#blocks.length >= PAGE.blocks || this.#bytes >= PAGE.bytes;
  }

  add(block: WalkedBlock): void {
    this.#blocks.push(block);
    this.#bytes += block.bytes?.length ?? 0;
  }

  take(): readonly WalkedBlock[] {
    const blocks = this.#blocks;
    this.#blocks = [];
    this.#bytes = 0;
    return blocks;
  }
}

const keyOf = ({ bytes }: CID): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");

/** Returns the links, or the error if the block is malformed. */
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
