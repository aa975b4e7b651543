/** The block store interface for collections across hosts; see `gc/blocks.ts`. */
import type { CID } from "multiformats/cid";
import { ownBytes } from "../../../util/own_bytes.ts";
import { cidOf, formOf, keyOf } from "../../blockstore/segments/format.ts";
import type { CondemnableBlocks } from "../gc/blocks.ts";
import type { BlockList, Position, SegmentId } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { BlockIndex, IndexedLocation } from "./block_index.ts";
import { cidsOf, readBlockList, writeBlockList } from "./block_lists.ts";
import type { IndexFeed } from "./index_feed.ts";
import { pagesOf } from "./pages.ts";

const formKey = (multihash: Uint8Array, form: number): string => `${form} ${keyOf(multihash)}`;

/** Decides which condemned blocks count as stored on this host. */
export class Suspensions {
  /** Restored blocks by epoch. */
  readonly #epochs = new Map<number, Set<string>>();
  #change = Promise.withResolvers<void>();

  /** Whether no block is hidden. */
  get isEmpty(): boolean {
    return this.#epochs.size === 0;
  }

  /** Whether it is undecided if this block will be removed. */
  hides(multihash: Uint8Array, { epoch, form }: IndexedLocation): boolean {
    if (epoch === 0) return false;
    const restored = this.#epochs.get(epoch);
    return restored !== undefined && !restored.has(formKey(multihash, form));
  }

  suspend(epoch: number): void {
    if (!this.#epochs.has(epoch)) this.#epochs.set(epoch, new Set());
  }

  restore(epoch: number, cids: readonly CID[]): void {
    const restored = this.#epochs.get(epoch);
    for (const cid of cids) restored?.add(formKey(cid.multihash.bytes, formOf(cid)));
    this.#changed();
  }

  /**
   * Ends the suspension of the collections with these epochs: they are decided, and the index
   * contains the decision.
   */
  decided(epochs: readonly number[]): void {
    for (const epoch of epochs) this.#epochs.delete(epoch);
    this.#changed();
  }

  /** Resolves when a hidden block may have become visible. */
  get change(): Promise<void> {
    return this.#change.promise;
  }

  /** Wakes all callers that wait for a decision. */
  close(): void {
    this.#changed();
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}

export interface CondemnedDeps {
  readonly index: BlockIndex;
  readonly feed: IndexFeed;
  readonly objects: ObjectStore;
  readonly suspensions: Suspensions;
  /** Resolves when `feed` knows everything that any host has committed. */
  readonly readLog: () => Promise<void>;
  /** Resolves when the index contains it as well. */
  readonly catchUp: () => Promise<void>;
  /** Returns a unique id. */
  readonly newId: () => SegmentId;
  /** Reads a block even when it is condemned. */
  readonly find: CondemnableBlocks["find"];
}

export function condemnableBlocks(deps: CondemnedDeps): CondemnableBlocks {
  const { index, feed, objects, suspensions, readLog, catchUp, newId, find } = deps;
  return {
    find,
    async forms({ multihash }) {
      await readLog();
      return feed.find(multihash.bytes).map(({ form }) => cidOf(form, ownBytes(multihash.bytes)));
    },
    async *stored(upTo: Position) {
      const isMeant = ({ epoch, segment }: IndexedLocation) =>
        epoch === 0 && (index.rows.get(segment)?.position ?? Number.POSITIVE_INFINITY) <= upTo;
      for await (const page of pagesOf(index, feed, catchUp)) {
        const meant = page.flatMap(({ multihash, locations: found }) =>
          found.filter(isMeant).map(({ form }) => cidOf(form, multihash)),
        );
        yield* meant;
      }
    },
    async suspend(epoch) {
      await readLog();
      if (feed.condemning.has(epoch)) suspensions.suspend(epoch);
    },
    async condemned(epoch, cids) {
      await readLog();
      return cids.flatMap((cid) => {
        const locations = feed.find(cid.multihash.bytes);
        const own = locations.filter(({ form }) => form === formOf(cid));
        const found = (own.length > 0 ? own : locations).filter((location) => location.epoch === epoch);
        return found.map(({ form }) => cidOf(form, ownBytes(cid.multihash.bytes)));
      });
    },
    async restore(epoch, cids) {
      suspensions.restore(epoch, cids);
    },
    writeList: (cids) => writeBlockList(objects, cids, newId),
    async *readList(list: BlockList) {
      yield* cidsOf(await readBlockList(objects, list));
    },
  };
}
