/** Reads nodes for one call, with the error texts for missing nodes. */
import type { CID } from "multiformats/cid";
import type { BlockService, ReadOptions } from "../../storage/blockstore/block_service.ts";
import type { Span } from "../../storage/blockstore/store.ts";
import { failure, NodeError } from "../../util/errors.ts";

/** Reads one block. Rejects with the failure that the caller should see. */
export interface ReadBlock {
  (cid: CID): Promise<Uint8Array>;
  /**
   * Like the function itself, but returns the bytes without a promise if they are available: see
   * `readSoon`. @throws instead of rejecting in that case
   */
  soon?(cid: CID): Uint8Array | Promise<Uint8Array>;
  /** Reads some of the bytes of a block; fewer if the block ends before. */
  part?(cid: CID, span: Span): Promise<Uint8Array>;
  /**
   * Returns the blocks that are probably in memory, without waiting. For many small blocks; see
   * `BlockStore.peek`.
   */
  peek?(cids: readonly CID[]): readonly (Uint8Array | undefined)[];
  /** Numbers that this reader may use about blocks: see `BlockService.noted`. */
  readonly notes?: { get(cid: CID): number | undefined; set(cid: CID, note: number): void };
  /** Releases bytes that `peek` has returned and that are no longer used. */
  release?(bytes: Uint8Array): void;
}

/**
 * Reads a block, without a promise if its bytes are available: for callers that read one at each
 * step.
 */
export const readSoon = (read: ReadBlock, cid: CID): Uint8Array | Promise<Uint8Array> => read.soon?.(cid) ?? read(cid);

export interface NodeReadOptions extends ReadOptions {
  /**
   * Do not name the requested block in the error when the call is aborted: the reference does not
   * do so when it reads in a session.
   */
  readonly nameless?: boolean | undefined;
}

/** Options for reading as `cat`, `ls` and the like do. */
export const inSession = ({ signal, offline, buffers }: ReadOptions): NodeReadOptions => ({
  signal,
  offline,
  buffers,
  nameless: true,
});

/** Reports a missing block as a missing node: the texts differ, as in the reference. */
export function nodeReader(blocks: BlockService, options: NodeReadOptions = {}): ReadBlock {
  const { signal, nameless } = options;
  const peek = (cids: readonly CID[]) => blocks.peek(cids, options);
  const soon = (cid: CID) => {
    const coming = blocks.getSoon(cid, options);
    return coming instanceof Promise ? coming.catch(failed) : coming;
  };
  const part = (cid: CID, span: Span) => blocks.getPart(cid, span, options).catch(failed);
  const notes = {
    get: (cid: CID) => blocks.noted(cid, options),
    set: (cid: CID, note: number) => blocks.note(cid, note),
  };
  const release = (bytes: Uint8Array) => options.buffers?.release(bytes);
  const atHand = { peek, notes, release };
  if (nameless) {
    return Object.assign((cid: CID) => blocks.get(cid, options).catch(failed), { ...atHand, part, soon });
  }
  const named = (cid: CID) =>
    blocks.get(cid, options).catch((error: unknown) => {
      if (signal?.aborted && NodeError.is(error) && isAbort(error, signal.reason)) {
        throw failure("BLOCK_NOT_READ", { cid: String(cid), reason: error.message }, error.cause ?? error);
      }
      return failed(error);
    });
  return Object.assign(named, atHand);
}

function failed(error: unknown): never {
  throw error instanceof NodeError && error.code === "BLOCK_NOT_FOUND"
    ? failure("NODE_NOT_FOUND", error.details, error)
    : error;
}

/**
 * Bitswap rejects with a copy of the signal's reason. The cause of that copy says how far the
 * search had got.
 */
function isAbort(error: NodeError, reason: unknown): boolean {
  return error === reason || (error.cause instanceof Error && error.cause.cause === reason);
}
