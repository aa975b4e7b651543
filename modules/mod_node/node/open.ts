/** Opens a repo, its stores and the node on top of them. */
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { moveTrees, treesOf } from "../content/mfs/key_trees.ts";
import type { Stores } from "../migration/open_stores/engines.ts";
import { openStores } from "../migration/open_stores/open.ts";
import { seed } from "../migration/seed.ts";
import { unmountStale } from "../mount/mounts.ts";
import { DiskReserve, type MakeRoom, releaseIfFull } from "../storage/disk_reserve.ts";
import { ownFolder } from "../storage/repo/datastore.ts";
import { openRepo, type Repo } from "../storage/repo/repo.ts";
import { isAgentVersion } from "../util/agent_version.ts";
import type { NodeOptions } from "./low_level_node.ts";
import { closeAll, LocalNode } from "./node.ts";

/** Opens the stores of the repo, or the ones that it shares with other hosts. */
async function openOwn(repo: Repo, options: NodeOptions, makeRoom: MakeRoom): Promise<Stores> {
  if (options.store === undefined) return openStores(repo, { ...options, makeRoom });
  // Imported lazily, because most hosts share no store.
  const { openSharedStores } = await import("../migration/open_stores/open_shared.ts");
  return openSharedStores(repo, options.store, { onNotice: options.onNotice, makeRoom });
}

/** The names of all `NodeOptions`; the type makes the compiler check that none is missing. */
const optionNames: Readonly<Record<keyof NodeOptions, true>> = {
  repo: true,
  data: true,
  init: true,
  profile: true,
  apiAddress: true,
  document: true,
  identity: true,
  overrides: true,
  offline: true,
  store: true,
  stores: true,
  lostMetadata: true,
  pubsub: true,
  namesOverPubsub: true,
  agent: true,
  debug: true,
  defaults: true,
  onNotice: true,
  signal: true,
};

/** Checks options at runtime, for programs without type checking. @throws TypeError */
function requireOptions(options: NodeOptions | undefined): void {
  if (typeof options?.repo !== "string" || options.repo === "")
    throw new TypeError('createNode takes { repo: "FOLDER" }');
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown !== undefined) {
    throw new TypeError(`createNode has no option ${unknown}; it has ${Object.keys(optionNames).join(", ")}`);
  }
  const { agent } = options;
  if (agent === undefined || (typeof agent === "string" && isAgentVersion(agent))) return;
  throw new TypeError("createNode takes agent as NAME/VERSION, such as kubo/0.43.0");
}

/**
 * Opens a repo, creating it if necessary, and the node's stores in it.
 *
 * @throws TypeError for invalid or unknown options, NodeError as `openRepo`
 */
export async function openNode(options: NodeOptions): Promise<LocalNode> {
  requireOptions(options);
  const { profile = options.document === undefined ? "local" : "" } = options;
  const folders = [options.repo, ...(options.data === undefined ? [] : [options.data])];
  await releaseIfFull(folders.flatMap((folder) => [folder, join(folder, ownFolder)]));
  const repo = await openRepo(options.repo, { ...options, profile });
  const reserve = new DiskReserve(dirname(repo.stores.metadata));
  const closing: (() => Promise<void>)[] = [() => repo.close()];
  try {
    await unmountStale(repo);
    const stores = await (options.stores ?? ((own) => openOwn(own, options, reserve.release)))(repo);
    const { blocks, metadata, hostMetadata } = stores;
    closing.unshift(
      () => blocks.close(),
      () => metadata.close(),
      async () => stores.close?.(),
    );
    if (hostMetadata !== undefined && hostMetadata !== metadata) closing.unshift(() => hostMetadata.close());
    if (options.stores === undefined) {
      closing.unshift(() => reserve.stop());
      await reserve.start();
    }
    const node = new LocalNode(repo, stores, options, closing);
    closing.unshift(
      () => node.mounts.unmount(),
      () => node.goOffline(),
      () => node.files.close(),
    );
    await node.denylists.reread();
    // A killed process may have left files in this folder.
    await rm(node.scratch, { recursive: true, force: true });
    // Earlier versions stored the trees of mounts in each host's own metadata.
    if (stores.shared !== undefined && node.hostMetadata !== metadata)
      await moveTrees(treesOf(node.hostMetadata), treesOf(metadata, repo.identity.peerId.toString()));
    await seed(node);
    void repo.lost.then(() => {
      options.onNotice?.(`the repo ${repo.path} was taken over by another process: this node is closed`);
      return node.close().catch(() => undefined);
    });
    return node;
  } catch (error) {
    await closeAll(closing).catch(() => undefined);
    throw error;
  }
}
