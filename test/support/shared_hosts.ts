/** A store in memory that several hosts of one process share. */
import type { MetadataStore } from "modhost/node";
import type { Stores } from "#node/migration/open_stores/engines.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { LogClient } from "#node/storage/shared/log_client.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { MemoryLog } from "#test/support/engines/memory_log.ts";

export interface HostStores extends Stores {
  readonly hostMetadata: MetadataStore;
  readonly shared: LogClient;
}

export class MemorySharedStore {
  readonly log = new MemoryLog();
  readonly blocks = memoryBlocks();

  /** Opens the store for another host, which gets a session of its own. */
  async join(): Promise<HostStores> {
    const shared = this.log.open();
    const metadata = await SharedMetadata.open(shared, memoryMetadata());
    return { blocks: withoutClose(this.blocks), metadata, hostMetadata: memoryMetadata(), shared };
  }
}

/** The same store without its `close`: a host that stops leaves it open for the others. */
const withoutClose = (blocks: BlockStore): BlockStore =>
  new Proxy(blocks, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (key === "close") return async () => undefined;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
