/** What a collection across hosts does with blocks: see `gc/blocks.ts`. */
import type { CID } from "multiformats/cid";
import { cidOf, formOf, keyOf } from "../../blockstore/segments/format.ts";
import type { CondemnableBlocks } from "../gc/blocks.ts";
import type { BlockList, Position, SegmentId } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { cidsOf, readBlockList, writeBlockList } from "./block_lists.ts";
import type { PlaceFeed } from "./feed.ts";
import { pagesOf } from "./pages.ts";
import type { Place, Places } from "./places.ts";

const formKey = (multihash: Uint8Array, form: number): string => `${form} ${keyOf(multihash)}`;

/** Which condemned blocks count as stored, on this host. */
export class Suspensions {
  /** What is restored, by epoch. */
  readonly #epochs = new Map<number, Set<string>>();
  #change = Promise.withResolvers<void>();

  /** Nothing is in doubt. */
  get isEmpty(): boolean {
    return this.#epochs.size === 0;
  }

  /** Whether it is not known whether this block goes. */
  hides(multihash: Uint8Array, { epoch, form }: Place): boolean {
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

  /** These epochs are decided, and the index says how. */
  decided(epochs: readonly number[]): void {
    for (const epoch of epochs) this.#epochs.delete(epoch);
    this.#changed();
  }

  /** Resolves when something that was hidden may no longer be. */
  get change(): Promise<void> {
    return this.#change.promise;
  }

  /** Nobody waits any longer. */
  close(): void {
    this.#changed();
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}

export interface CondemnedDeps {
  readonly places: Places;
  readonly feed: PlaceFeed;
  readonly objects: ObjectStore;
  readonly suspensions: Suspensions;
  /** Everything that was committed anywhere is found by `feed`. */
  readonly hear: () => Promise<void>;
  /** It is in the index as well. */
  readonly catchUp: () => Promise<void>;
  /** An id that nothing else has. */
  readonly newId: () => SegmentId;
  /** A block whatever is said of it. */
  readonly find: CondemnableBlocks["find"];
}

export function condemnableBlocks(deps: CondemnedDeps): CondemnableBlocks {
  const { places, feed, objects, suspensions, hear, catchUp, newId, find } = deps;
  return {
    find,
    async *stored(upTo: Position) {
      const isMeant = ({ epoch, segment }: Place) =>
        epoch === 0 && (places.rows.get(segment)?.position ?? Number.POSITIVE_INFINITY) <= upTo;
      for await (const page of pagesOf(places, feed, catchUp)) {
        const meant = page.flatMap(({ multihash, places: found }) =>
          found.filter(isMeant).map(({ form }) => cidOf(form, multihash)),
        );
        yield* meant;
      }
    },
    async suspend(epoch) {
      await hear();
      if (feed.condemning.has(epoch)) suspensions.suspend(epoch);
    },
    async condemned(epoch, cids) {
      await hear();
      return cids.filter((cid) => {
        const found = feed.find(cid.multihash.bytes).find(({ form }) => form === formOf(cid));
        return found?.epoch === epoch;
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
