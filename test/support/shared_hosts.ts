/** Several hosts in one process on one store, which is in memory. */
import type { MetadataStore } from "modhost/node";
import type { Stores } from "#node/migration/open_stores/engines.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { OverlayTransaction } from "#node/storage/metadata/overlay_transaction.ts";
import { prefixedStore } from "#node/storage/metadata/prefixed_store.ts";
import type { SharedLog } from "#node/storage/shared/log.ts";

/** The same entries, in a store that outlives whoever closes it, and calls what runs in a transaction twice. */
export function sharedMetadata(held: MetadataStore): MetadataStore {
  const store: MetadataStore = {
    ...prefixedStore(held, ""),
    transaction: (run) =>
      held.transaction((writer) => {
        run(new OverlayTransaction(writer));
        return run(writer);
      }),
  };
  return store;
}

/** The same store; whoever closes it leaves it open for the others. */
const kept = (blocks: BlockStore): BlockStore =>
  new Proxy(blocks, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (key === "close") return async () => undefined;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });

export interface SharedStores {
  /** What all hosts have. */
  readonly metadata: MetadataStore;
  /** Stores for the next host, with a session of its own. */
  join(): Stores & { readonly shared: SharedLog; readonly hostMetadata: MetadataStore };
  /** A host that came to nothing: its session is over. */
  end(session: number): void;
}

export function sharedStores(): SharedStores {
  const [metadata, blocks] = [memoryMetadata(), memoryBlocks()];
  const alive = new Set<number>();
  let last = 0;
  return {
    metadata,
    end: (session) => void alive.delete(session),
    join() {
      last += 1;
      const session = last;
      alive.add(session);
      // Only of whom there is, is asked here: reads of the store itself are always of the newest state.
      const shared = { session, sessions: async () => [...alive] } as unknown as SharedLog;
      return {
        blocks: kept(blocks),
        metadata: sharedMetadata(metadata),
        hostMetadata: memoryMetadata(),
        shared,
      };
    },
  };
}
