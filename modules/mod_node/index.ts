/**
 * `modhost/node`: the node as a library. It has no HTTP interface. `mod_node.ts` makes it a module
 * of the host.
 */

import type { ContentPath } from "./content/resolver/path.ts";
import type { Resolved } from "./content/resolver/resolve.ts";
import { clientNode } from "./library/client_node.ts";
import type { Node } from "./library/types.ts";
import type { NodeOptions } from "./node/low_level_node.ts";
import { openNode } from "./node/open.ts";
import type { Repo } from "./storage/repo/repo.ts";

// The node: its methods with their options and results, and its errors.

export type * from "./api/index.ts";
export { pendingOpens } from "./library/pending_opens.ts";
export type { Node, NodeModule } from "./library/types.ts";
export type { LowLevelNode, NodeOptions, NodeStat, OfflineCode } from "./node/low_level_node.ts";
export { type NodeMetrics, nodeMetrics } from "./node/node_metrics.ts";
export type { Identity, IdentityConfig } from "./storage/repo/identity.ts";
export { type FailureCode, failure, NodeError, retryAfter } from "./util/errors.ts";

// Helpers that write results as the RPC API does: texts, numbers and names.

export { compareNames } from "./formats/dag_pb/dag_pb.ts";
export { type DagPbLink, type DagPbNode, encodeDagPb } from "./formats/dag_pb/pb_object.ts";
export * from "./library/text.ts";
export { eventTypes as routingEventTypes } from "./network/kad/events.ts";
export { isAgentVersion } from "./util/agent_version.ts";
export { apiVersion, type VersionFacts, versionFacts } from "./util/version.ts";

// Repos that no node has open: finds, inspects, makes and migrates them.

export { inspectRepo, type RepoInspection } from "./library/inspect_repo.ts";
export type { StoreInspection } from "./library/inspect_store.ts";
export { type FilesRootOptions, replaceFilesRoot } from "./library/replace_files_root.ts";
export { type MigrationOptions, type MigrationProgress, migrateRepo } from "./migration/migrate.ts";
export { memoryStores, type Stores } from "./migration/open_stores/engines.ts";
export {
  type SharedStoreStat,
  type SharedStoreVisit,
  type VisitOptions,
  visitSharedStore,
} from "./migration/open_stores/visit_shared.ts";
export { type FromSharedOptions, migrateFromShared } from "./migration/shared/from_shared.ts";
export type { Migrated } from "./migration/shared/migrated.ts";
export { migrateToShared, type ToSharedOptions } from "./migration/shared/to_shared.ts";
export { DEFAULT_RSA_BITS, generateKey, identityOf } from "./storage/keystore/key.ts";
export type { ConfigChange, ConfigFile, ConfigOverrides } from "./storage/repo/config.ts";
export { watchConfig } from "./storage/repo/config_watch.ts";
export { headerFault } from "./storage/repo/header_fault.ts";
export type { ConfigApplied, WaitingKey } from "./storage/repo/in_force.ts";
export { lockHolder } from "./storage/repo/lock.ts";
export { isProfile, profiles } from "./storage/repo/profiles.ts";
export { halfCopied, isRepo } from "./storage/repo/repo.ts";
export type { ConfigPath } from "./storage/repo/schema.ts";

// For programs that use `lowLevel`.

export { addEntries } from "./content/adder/adder.ts";
export { addSettings } from "./content/adder/settings.ts";
export { exportPath, type PathArchive, type PathArchiveOptions } from "./content/car/export_path.ts";
export { BlockLeases } from "./content/dag/block_leases.ts";
export { type ReadBlock, readSoon } from "./content/dag/reader.ts";
export { watchDenylists } from "./content/denylists/watch.ts";
export { type EditTreeOptions, putIntoTree, removeFromTree } from "./content/mfs/edit_tree.ts";
export { followNames } from "./content/resolver/resolve.ts";
export type { AddEntry, AddEvent, AddSettings } from "./content/unixfs/add.ts";
export { entries as directoryEntries, lookup as directoryEntry } from "./content/unixfs/list.ts";
export { fileSize, isDirectory, type UnixfsNode } from "./content/unixfs/node.ts";
export { bulkReader, openFile, openNode } from "./content/unixfs/open.ts";
export { readFile } from "./content/unixfs/read.ts";
export { readWithin } from "./content/unixfs/read_within.ts";
export { exportTar } from "./content/unixfs/tar.ts";
export { dateOf } from "./content/unixfs/times.ts";
export type { ModeAndTime, UnixTime } from "./formats/unixfs/format.ts";
export { type PeerRecord, recordFilter } from "./network/routing/peer_record.ts";
export { type PeerAddress, parsePeerAddress } from "./network/swarm/multiaddr.ts";
export type { Block, BlockStore } from "./storage/blockstore/store.ts";
export { prefixedStore, prefixedWriter } from "./storage/metadata/prefixed_store.ts";
export { readJsonEntry } from "./storage/metadata/read_entry.ts";
export type { MetadataStore, MetadataWriter } from "./storage/metadata/store.ts";
export type { SharedStoreSettings } from "./storage/shared/settings.ts";
export { TimeSlices } from "./util/async/steps.ts";
export type { NodeLog, NodeLogLevel } from "./util/log.ts";
export type { ContentPath, Repo, Resolved };

/**
 * Opens a repo, creating it if necessary, and the node's stores in it. The node has the same
 * interface as the client libraries of the RPC API, so that a program can switch between
 * `create({ url })` of such a library and this function by changing one line.
 *
 * @throws TypeError for invalid or unknown options, NodeError as `openRepo`
 */
export async function createNode(options: NodeOptions): Promise<Node> {
  return clientNode(await openNode(options));
}

/**
 * See `inspect_store.ts`, which is loaded on demand because it needs the code of shared stores.
 */
export const inspectStore: typeof import("./library/inspect_store.ts").inspectStore = async (...given) => {
  const loaded = await import("./library/inspect_store.ts");
  return loaded.inspectStore(...given);
};
