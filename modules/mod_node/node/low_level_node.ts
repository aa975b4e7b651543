/** The components of a node, as used by its client interface, the mounts and the migration. */
import type { CID } from "multiformats/cid";
import type { BackupSnapshot } from "../../../core/types.ts";
import type { SizeSharding } from "../content/adder/import_config.ts";
import type { NodeReadOptions, ReadBlock } from "../content/dag/reader.ts";
import type { Denylists } from "../content/denylists/denylists.ts";
import type { Namespace } from "../content/mfs/namespace.ts";
import type { NotRemoved, Removed } from "../content/pins/gc.ts";
import type { Pins } from "../content/pins/pins.ts";
import type { Resolved } from "../content/resolver/resolve.ts";
import type { Stores } from "../migration/open_stores/engines.ts";
import type { LostMetadata } from "../migration/open_stores/lost_metadata.ts";
import type { Mounts } from "../mount/mounts.ts";
import type { Names } from "../network/ipns/names.ts";
import type { RecordOptions } from "../network/ipns/resolver.ts";
import type { Network } from "../network/network.ts";
import type { MfsPolicy } from "../network/pinning_services/mfs_policy.ts";
import type { RemotePins } from "../network/pinning_services/remote_pins.ts";
import type { BlockService } from "../storage/blockstore/block_service.ts";
import type { Filestore } from "../storage/filestore/filestore.ts";
import type { Keystore } from "../storage/keystore/keystore.ts";
import type { MetadataStore } from "../storage/metadata/store.ts";
import type { Repo, RepoOptions } from "../storage/repo/repo.ts";
import type { SharedLog } from "../storage/shared/log.ts";
import type { SharedStoreMetrics } from "../storage/shared/metrics.ts";
import type { SharedStoreSettings } from "../storage/shared/settings.ts";
import type { SharedLock } from "../util/async/shared_lock.ts";
import type { NodeCounts } from "../util/counts.ts";
import type { FailureCode, FailureKind } from "../util/errors.ts";
import type { NodeLog } from "../util/log.ts";

/** The reference has two messages for an offline node; most commands use the first. */
export type OfflineCode = Extract<FailureCode, "OFFLINE_COMMAND" | "OFFLINE">;

export interface NodeOptions extends RepoOptions {
  /**
   * Profiles to apply if a new repo is created, separated by commas. Default: `local` unless a
   * `document` is given, so that a node joins the public network only on request. "" creates a repo
   * with the reference's defaults.
   */
  readonly profile?: string | undefined;
  /** Folder of the repo. */
  readonly repo: string;
  /** Never use the network. */
  readonly offline?: boolean | undefined;
  /**
   * The shared store for blocks, pins, files and names of several hosts. Default: these are stored
   * in the repo.
   */
  readonly store?: SharedStoreSettings | undefined;
  /** Opens stores to use instead of those of the repo. The node closes them. */
  readonly stores?: (repo: Repo) => Promise<Stores>;
  /**
   * Enables publish and subscribe. Default: `Pubsub.Enabled` of the config, else that of
   * `defaults`, else false.
   */
  readonly pubsub?: boolean | undefined;
  /**
   * Also publishes and resolves names over pubsub, if that is enabled. Default: `Ipns.UsePubsub` of
   * the config, else that of `defaults`, else false.
   */
  readonly namesOverPubsub?: boolean | undefined;
  /**
   * Accepts settings that are otherwise refused as a burden on others: any `Ipns.RepublishPeriod`.
   * Default: true if the environment has `DEBUG` set to 1, t or true, or `IPFS_LOGGING` set to
   * debug.
   */
  readonly debug?: boolean | undefined;
  /**
   * The agent version, such as `kubo/0.43.0`, that the node reports to peers by identify and to
   * callers of `id`. Default: this program and its version.
   */
  readonly agent?: string | undefined;
  /** Defaults for settings that neither these options nor the config contain. */
  readonly defaults?: { readonly pubsub?: boolean; readonly namesOverPubsub?: boolean } | undefined;
  /**
   * Action to take if the repo contains blocks, but its metadata (pins, files and names) is missing
   * or empty: `refuse` to open (default), `restore` the backup copy that the node stores next to
   * the metadata, or open with `none`. With `none`, nothing is pinned, and garbage collection
   * removes every block.
   */
  readonly lostMetadata?: LostMetadata | undefined;
  /**
   * Receives notices for the operator: repairs made while opening the stores, and limitations of
   * the network.
   */
  readonly onNotice?: (sentence: string) => void;
  /**
   * Aborts opening, which may take long if stores have to be copied. The call then rejects with the
   * signal's reason.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The components below the client interface, for programs that need more than it offers: stores,
 * locks, readers with sessions. Can be closed by `await using`.
 */
export interface LowLevelNode extends AsyncDisposable {
  /** Folder, configuration document and identity. */
  readonly repo: Repo;
  readonly blocks: BlockService;
  /**
   * Everything that is not a block. Keys start with a prefix for their owner: `pins/`, `files/`,
   * ... Modules use `prefixedStore(node.metadata, "modules/<name>/")` for their own data. Hosts
   * that share a store share this data.
   */
  readonly metadata: MetadataStore;
  /** Metadata of this host only; the same as `metadata` unless the store is shared. */
  readonly hostMetadata: MetadataStore;
  /** The hosts that share the store; undefined if the store is not shared. */
  readonly shared: Pick<SharedLog, "session" | "sessions"> | undefined;
  readonly pins: Pins;
  /** The mutable namespace (MFS). */
  readonly files: Namespace;
  /**
   * How directories are sharded by size, according to `Import.*` of the configuration when the node
   * was opened.
   */
  readonly sizeSharding: SizeSharding;
  /**
   * How files of the namespace are chunked if imports follow the configuration:
   * `Import.UnixFSChunker` when the node was opened.
   */
  readonly filesChunker: string;
  /** Undefined unless the filestore or the urlstore is enabled. */
  readonly filestore: Filestore | undefined;
  /**
   * Like `blocks`, but always stores the bytes of a block, even if the filestore has a reference to
   * it.
   */
  readonly wholeBlocks: BlockService;
  /** Content that is neither read nor served. */
  readonly denylists: Denylists;
  /** Folder for temporary data that is too large for memory; empty except during calls. */
  readonly scratch: string;
  /** The keys for publishing names, except the node's own. */
  readonly keys: Keystore;
  readonly names: Names;
  /** Pins at remote pinning services. */
  readonly remotePins: RemotePins;
  /** Keeps the MFS root pinned at remote services; runs automatically while the node is online. */
  readonly mfsPolicy: MfsPolicy;
  /** Mounts the node as folders of this machine. */
  readonly mounts: Mounts;
  /**
   * Garbage collection holds this lock exclusively; operations that put blocks before pinning them
   * share it.
   */
  readonly lock: SharedLock;
  readonly log: NodeLog;
  /** Counts of the node's work since it was opened. */
  readonly counts: NodeCounts;
  /**
   * Why calls currently fail, in a sentence: a shared store cannot be reached, or refuses writes.
   * Undefined while everything works.
   */
  readonly problem: string | undefined;
  /** Counts of this host's requests to the shared store; undefined if the store is not shared. */
  readonly storeMetrics: SharedStoreMetrics | undefined;
  /** The agent version that the node reports. */
  readonly agent: string;
  /** Whether the node was opened with `offline` and never uses the network. */
  readonly offline: boolean;
  /** Whether the network is open or being opened. */
  readonly online: boolean;
  /**
   * Opens the network according to the configuration; resolves at once if `offline`. The node does
   * not communicate with other peers before this is called. May be called repeatedly, also after a
   * failure.
   *
   * @throws NodeError for an invalid configuration
   */
  goOnline(): Promise<void>;
  /** Closes the network; calls that wait for peers fail. Part of `close`. */
  goOffline(): Promise<void>;
  /**
   * Resolves to the network once it is open. `refusal` and `text` select the kind and the message
   * of the error otherwise.
   *
   * @throws NodeError while the node is offline
   */
  network(refusal?: FailureKind, text?: OfflineCode): Promise<Network>;
  /**
   * Resolves a content path to a block.
   *
   * @throws NodeError with the reference's messages for invalid paths, missing links and unknown
   * names
   */
  resolve(path: string, options?: NodeReadOptions & RecordOptions): Promise<Resolved>;
  /**
   * Returns a block reader for one call. It uses the network unless `offline` is set. A missing
   * block rejects with NODE_NOT_FOUND.
   */
  reader(options?: NodeReadOptions): ReadBlock;
  /**
   * Announces in the background that the node provides the DAGs below these roots, if it is online.
   */
  announce(roots: readonly CID[]): void;
  /**
   * Resolves when everything that was put so far is on disk. Await it before acknowledging a write.
   */
  sync(): Promise<void>;
  stat(): Promise<NodeStat>;
  /**
   * Whether the stores use more than `Datastore.StorageGCWatermark` percent of
   * `Datastore.StorageMax`.
   */
  isNearlyFull(): Promise<boolean>;
  /**
   * Collects garbage: removes all blocks that are neither pinned nor otherwise needed, and yields
   * each removed block and each failure. Running additions pause for it, however slow their source
   * is; it only waits for imports of archives (`dag/import`).
   */
  collect(signal?: AbortSignal): AsyncGenerator<Removed | NotRemoved, void, undefined>;
  /**
   * Resolves to a snapshot of the repo for a backup. Its files stay readable until `release` while
   * the node continues, and garbage collection does not remove anything that they need. For a host
   * of a shared store, the snapshot only contains its configuration and keys.
   *
   * @throws NodeError if the stores are not files
   */
  hold(signal: AbortSignal): Promise<BackupSnapshot>;
  /** Resolves when everything is closed and the repo is unlocked. May be called repeatedly. */
  close(): Promise<void>;
}

export interface NodeStat {
  /** Number of stored blocks and of references in the filestore. */
  readonly blocks: number;
  /** Bytes used on disk by the stores. */
  readonly bytes: number;
  /** `Datastore.StorageMax` in bytes; undefined if not configured. */
  readonly storageMax: number | undefined;
}
