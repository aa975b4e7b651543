/** The node behind the commands. It works without HTTP: `import { createNode } from "modhost/node"`. */
import { rm } from "node:fs/promises";
import { closeAll, LocalNode } from "./local_node.ts";
import { unmountStale } from "./mount/mounts.ts";
import type { ContentPath } from "./path/path.ts";
import type { Resolved } from "./path/resolve.ts";
import { openRepo, type Repo } from "./repo/repo.ts";
import { seed } from "./seed.ts";
import { openStores } from "./stores/open.ts";
import type { Node, NodeOptions } from "./types.ts";

export type { Block, BlockStore } from "./blocks/store.ts";
export { parseCid } from "./cid/text.ts";
export { type FailureCode, NodeError } from "./errors.ts";
export { ingest } from "./ingest/ingest.ts";
export { addSettings } from "./ingest/settings.ts";
export { roomOf } from "./metadata/room.ts";
export type { MetadataStore, MetadataWriter } from "./metadata/store.ts";
export { type MigrationOptions, type MigrationProgress, migrateRepo } from "./migrate/migrate.ts";
export { type PeerAddress, parsePeerAddress } from "./peers/multiaddr.ts";
export type { ConfigChange, ConfigFile } from "./repo/config.ts";
export type { Identity } from "./repo/identity.ts";
export { memoryStores, type Stores } from "./stores/engines.ts";
export type { Node, NodeModule, NodeOptions, NodeStat, OfflineCode } from "./types.ts";
export type { AddEntry, AddEvent, AddSettings } from "./unixfs/add.ts";
export { openFile } from "./unixfs/open.ts";
export { readFile } from "./unixfs/read.ts";
export type { ContentPath, Repo, Resolved };

/** Of `NodeOptions`, all of them. */
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
  stores: true,
  pubsub: true,
  namesOverPubsub: true,
  onNotice: true,
  signal: true,
};

/** @throws TypeError, for programs that no compiler has checked */
function requireOptions(options: NodeOptions | undefined): void {
  if (typeof options?.repo !== "string" || options.repo === "")
    throw new TypeError('createNode takes { repo: "FOLDER" }');
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown === undefined) return;
  throw new TypeError(`createNode has no option ${unknown}; it has ${Object.keys(optionNames).join(", ")}`);
}

/**
 * Opens a repo, made when it is not there, and all that the node keeps in it.
 *
 * @throws TypeError of options that are none, NodeError as `openRepo`
 */
export async function createNode(options: NodeOptions): Promise<Node> {
  requireOptions(options);
  const { profile = options.document === undefined ? "local" : "" } = options;
  const repo = await openRepo(options.repo, { ...options, profile });
  const closing: (() => Promise<void>)[] = [() => repo.close()];
  try {
    await unmountStale(repo);
    const { blocks, metadata } = await (options.stores ?? ((own) => openStores(own, options)))(repo);
    closing.unshift(
      () => blocks.close(),
      () => metadata.close(),
    );
    const node = new LocalNode(repo, { blocks, metadata }, options, closing);
    closing.unshift(
      () => node.mounts.unmount(),
      () => node.goOffline(),
      () => node.files.close(),
    );
    // What a killed process may have left.
    await rm(node.scratch, { recursive: true, force: true });
    await seed(node);
    return node;
  } catch (error) {
    await closeAll(closing).catch(() => undefined);
    throw error;
  }
}
