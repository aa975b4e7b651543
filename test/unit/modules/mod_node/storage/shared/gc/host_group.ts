/** Nodes of several hosts on one store in memory, which collect garbage together. */
import { join } from "node:path";
import type { TestContext } from "node:test";
import { createNode, type Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import { isRootKey } from "#node/content/pins/root_keys.ts";
import type { Stores } from "#node/migration/open_stores/engines.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";
import { Collections } from "#node/storage/shared/gc/collections.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { openSharedBlocks } from "#node/storage/shared/segments/open.ts";
import { MemoryLog } from "#test/support/engines/memory_log.ts";
import { MemoryObjects } from "#test/support/engines/memory_objects.ts";
import { eventually } from "#test/support/eventually.ts";
import { emptyFolder } from "../../repo/support.ts";

export class HostGroup {
  readonly log = new MemoryLog();
  readonly contents: MemoryObjects["contents"] = new Map();

  /** Opens the stores of one more host. */
  async stores(t: TestContext, hostMetadata: MetadataStore = memoryMetadata()): Promise<Stores> {
    const log = this.log.open();
    const objects = new MemoryObjects(this.contents, {});
    const remove = (cids: readonly CID[]) => collections.remove(cids);
    const blocks = await openSharedBlocks({ folder: join(await emptyFolder(t), "blocks"), objects, log, remove });
    const metadata = await SharedMetadata.open(log, memoryMetadata());
    const collections = new Collections({ log, metadata, blocks: blocks.condemnable, isRoot: isRootKey, pollMs: 5 });
    await collections.start();
    const close = async () => {
      await collections.close();
      await log.close();
    };
    return { blocks, metadata, hostMetadata, shared: log, collections, close };
  }

  async node(t: TestContext): Promise<Node> {
    const stores = () => this.stores(t);
    const node = await createNode({ repo: await emptyFolder(t), offline: true, stores });
    t.after(() => node.close());
    return node;
  }
}

type Host = Pick<LowLevelNode, "shared" | "metadata">;

/**
 * Ends the session of a host, as the database does when the host was silent for too long. The host
 * notices it later.
 */
export function shutOut({ log }: HostGroup, { shared, metadata }: Host): { readonly rejoined: () => Promise<void> } {
  const session = shared?.session as number;
  log.endSession(session);
  const rejoined = () =>
    eventually("the host has joined again", () =>
      metadata
        .transaction((writer) => writer.put("x", new Uint8Array(1)))
        .then(
          () => shared?.session !== session,
          () => false,
        ),
    );
  return { rejoined };
}
