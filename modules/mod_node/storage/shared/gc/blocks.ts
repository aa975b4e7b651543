/** The block store interface for garbage collection across hosts. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "../../blockstore/buffer_pool.ts";
import type { BlockStore } from "../../blockstore/store.ts";
import type { BlockList, Position } from "../log.ts";

/**
 * A block store whose blocks can be condemned. It follows the log itself. Between `condemned` and
 * `removed` of an epoch, a condemned block goes through two phases:
 *
 * 1. From the entry until `suspend`, the block is used as before. Running calls may continue with
 *    it, because they are asked later which blocks they refer to.
 * 2. From `suspend` on, `put` stores the block again in a new segment, and `has` returns false.
 *    `get` waits for `removed` or `restore`, and then returns the block or not. So a block that a
 *    root retains is never reported missing, and no call begins to refer to a block that is about
 *    to be removed.
 *
 * Copies of a block in segments after `upTo` are not affected. With `removed`, all condemned blocks
 * that were not rescued are gone.
 */
export interface CondemnableBlocks {
  /**
   * Yields the blocks in segments that were committed up to this position, except condemned ones.
   * May yield a block several times.
   */
  stored(upTo: Position): AsyncIterable<CID>;
  /**
   * Returns the block in any stored form, even while it is condemned; undefined when it is not
   * stored. `BlockStore.get` explains `buffers`.
   */
  readonly find: (cid: CID, buffers?: BufferPool) => Promise<Uint8Array | undefined>;
  /** Returns the committed forms of the multihash, condemned ones included. */
  readonly forms: BlockStore["forms"];
  /**
   * Begins the second phase, also after a restart during it. Called with the local garbage
   * collection lock.
   */
  suspend(epoch: number): Promise<void>;
  /**
   * Returns the CIDs that are condemned in this epoch in the given segments. A form that is not
   * stored stands for the stored forms.
   */
  condemned(epoch: number, cids: readonly CID[]): Promise<readonly CID[]>;
  /**
   * Makes blocks usable again for running calls of this host. These blocks will be among the
   * rescued ones as long as the session lives.
   */
  restore(epoch: number, cids: readonly CID[]): Promise<void>;
  /**
   * Writes a list for an entry of the log. A short list is part of the entry; a long one becomes an
   * object.
   */
  writeList(cids: AsyncIterable<CID> | Iterable<CID>): Promise<BlockList>;
  readList(list: BlockList): AsyncIterable<CID>;
}
