/** What a collection across hosts needs of the block store. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "../../blockstore/buffer_pool.ts";
import type { BlockList, Position } from "../log.ts";

/**
 * The block store follows the log itself. Between `condemned` and `removed` of an epoch a condemned block goes through two phases:
 *
 * 1. From the entry on until `suspend`: as before. Calls under way may go on with it, since they are asked what they refer to.
 * 2. From `suspend` on: `put` stores it again, into a new segment, and `has` says no. `get` waits for `removed`, or `restore`, and
 *    answers by that: what the roots keep is never reported missing, and nobody begins to refer to what goes.
 *
 * Copies of a block in segments behind `upTo` are not concerned. With `removed` the blocks that are not rescued are gone.
 */
export interface CondemnableBlocks {
  /** Blocks in segments that were committed up to there, condemned ones left out. Several times the same is fine. */
  stored(upTo: Position): AsyncIterable<CID>;
  /** The block, also while it is condemned. Undefined when it is not stored. For `buffers` see `BlockStore.get`. */
  readonly find: (cid: CID, buffers?: BufferPool) => Promise<Uint8Array | undefined>;
  /** Begins the second phase; also after a restart in the midst of it. Called with the local lock of garbage collection. */
  suspend(epoch: number): Promise<void>;
  /** Which of these are condemned in this epoch, in segments that it concerns. */
  condemned(epoch: number, cids: readonly CID[]): Promise<readonly CID[]>;
  /** Calls of this host go on with these: they will be among the rescued, as long as its session lives. */
  restore(epoch: number, cids: readonly CID[]): Promise<void>;
  /** For an entry of the log: in itself where they are few, otherwise as an object. */
  writeList(cids: AsyncIterable<CID> | Iterable<CID>): Promise<BlockList>;
  readList(list: BlockList): AsyncIterable<CID>;
}
