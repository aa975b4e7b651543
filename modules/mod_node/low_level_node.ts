/** The components of a node, as used by its client interface, the mounts and the migration. */
import type { CID } from "multiformats/cid";
import type { HeldData } from "../../core/types.ts";
import type { SizeSharding } from "./content/adder/import_config.ts";
import type { NodeReadOptions, ReadBlock } from "./content/dag/reader.ts";
import type { Denylists } from "./content/denylists/denylists.ts";
import type { Namespace } from "./content/mfs/namespace.ts";
import type { NotRemoved, Removed } from "./content/pins/gc.ts";
import type { Pins } from "./content/pins/pins.ts";
import type { Resolved } from "./content/resolver/resolve.ts";
import type { Stores } from "./migration/open_stores/engines.ts";
import type { LostMetadata } from "./migration/open_stores/lost_metadata.ts";
import type { Mounts } from "./mount/mounts.ts";
import type { Names } from "./network/ipns/names.ts";
import type { RecordOptions } from "./network/ipns/resolver.ts";
import type { Network } from "./network/network.ts";
import type { MfsPolicy } from "./network/pinning_services/mfs_policy.ts";
import type { RemotePins } from "./network/pinning_services/remote_pins.ts";
import type { BlockService } from "./storage/blockstore/block_service.ts";
import type { Filestore } from "./storage/filestore/filestore.ts";
import type { Keystore } from "./storage/keystore/keystore.ts";
import type { MetadataStore } from "./storage/metadata/store.ts";
import type { Repo, RepoOptions } from "./storage/repo/repo.ts";
import type { SharedFigures } from "./storage/shared/figures.ts";
import type { SharedLog } from "./storage/shared/log.ts";
import type { SharedStoreSettings } from "./storage/shared/settings.ts";
import type { SharedLock } from "./util/async/shared_lock.ts";
import type { NodeCounts } from "./util/counts.ts";
import type { FailureCode, FailureKind } from "./util/errors.ts";
import type { NodeLog } from "./util/log.ts";

/** The reference has two messages for being offline; most commands use the first. */
export type OfflineCode = Extract<FailureCode, "OFFLINE_COMMAND" | "OFFLINE">;

export interface NodeOptions extends RepoOptions {
  /**
   * Profiles to apply if a new repo is created, separated by commas. Default: `local` unless a `document` is given, so
   * that a node joins the public network only on request. "" creates a repo with the reference's defaults.
   */
  readonly profile?: string | undefined;
  /** Folder of the repo. */
  readonly repo: string;
  /** Never use the network. */
  readonly offline?: boolean | undefined;
  /** Where blocks, pins, files and names are that several hosts share. Default: in the repo. */
  readonly store?: SharedStoreSettings | undefined;
  /** Opens stores to use instead of those of the repo. The node closes them. */
  readonly stores?: (repo: Repo) => Promise<Stores>;
  /** Enables publish and subscribe. Default: `Pubsub.Enabled` of the config, else that of `defaults`, else false. */
  readonly pubsub?: boolean | undefined;
  /** Also publishes and resolves names by publish and subscribe, if that is enabled. Default: `Ipns.UsePubsub`, likewise. */
  readonly namesOverPubsub?: boolean | undefined;
  /**
   * Takes a configuration that is otherwise refused as a burden on others: any `Ipns.RepublishPeriod`. By default as the
   * environment says: `DEBUG` is 1, t or true, or `IPFS_LOGGING` is debug.
   */
  readonly debug?: boolean | undefined;
  /** What the node calls itself, as `kubo/0.43.0`, to peers by identify and to callers of `id`. Default: this program and its version. */
  readonly agent?: string | undefined;
  /** What counts where neither these options nor the config say it. */
  readonly defaults?: { readonly pubsub?: boolean; readonly namesOverPubsub?: boolean } | undefined;
  /**
   * What to do when there are blocks in the repo, and the metadata, with pins, files and names, is missing or empty:
   * `refuse` to open (default), `restore` the copy that the node keeps beside it, or open with `none`: then nothing is
   * pinned, and a collection of garbage removes every block.
   */
  readonly lostMetadata?: LostMetadata | undefined;
  /** Receives notices for the operator: repairs made while opening the stores, and limitations of the network. */
  readonly onNotice?: (sentence: string) => void;
  /** Aborts opening, which may take long if stores have to be copied. It then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The components below the client interface, for programs that need more than that offers: stores, locks, readers with
 * sessions. Can be closed by `await using`.
 */
export interface LowLevelNode extends AsyncDisposable {
  /** Folder, configuration document and identity. */
  readonly repo: Repo;
  readonly blocks: BlockService;
  /**
   * Everything that is not a block. Keys start with a prefix for their owner: `pins/`, `files/`, ... Modules use
   * `prefixedStore(node.metadata, "modules/<name>/")` for their own data. Where several hosts share a store, all of them
   * have it.
   */
  readonly metadata: MetadataStore;
  /** What concerns this host alone; the same as `metadata` unless the store is shared. */
  readonly hostMetadata: MetadataStore;
  /** The hosts that share the store; undefined where it is this host's own. */
  readonly shared: Pick<SharedLog, "session" | "sessions"> | undefined;
  readonly pins: Pins;
  /** The mutable namespace (MFS). */
  readonly files: Namespace;
  /** How directories are sharded by their size, as `Import.*` of the configuration said when the node was opened. */
  readonly sizeSharding: SizeSharding;
  /** How files of the namespace are cut where imports go by the configuration: `Import.UnixFSChunker` of the start. */
  readonly filesChunker: string;
  /** Undefined unless the filestore or the urlstore is enabled. */
  readonly filestore: Filestore | undefined;
  /** Like `blocks`, but always stores the bytes of a block, even if the filestore has a reference to it. */
  readonly wholeBlocks: BlockService;
  /** What is neither read nor served. */
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
  /** Held exclusively by garbage collection, and shared by operations that put blocks before pinning them. */
  readonly lock: SharedLock;
  readonly log: NodeLog;
  /** What it has done since it was opened. */
  readonly counts: NodeCounts;
  /** Why calls fail for now, in a sentence: a shared store cannot be reached, or takes no writes. Undefined while all is well. */
  readonly problem: string | undefined;
  /** What this host has asked of the store that it shares; undefined where it shares none. */
  readonly sharedFigures: SharedFigures | undefined;
  /** What the node calls itself. */
  readonly agent: string;
  /** The node was opened with `offline` and never uses the network. */
  readonly offline: boolean;
  /** The network is open or being opened. */
  readonly online: boolean;
  /**
   * Opens the network according to the configuration; resolves at once if `offline`. The node does not communicate with
   * other peers before this is called. May be called repeatedly, also after a failure.
   *
   * @throws NodeError for an invalid configuration
   */
  goOnline(): Promise<void>;
  /**
   * Resolves to the network once it is open. `refusal` and `text` select kind and message of the error otherwise.
   *
   * @throws NodeError while the node is offline
   */
  network(refusal?: FailureKind, text?: OfflineCode): Promise<Network>;
  /**
   * Resolves a content path to a block.
   *
   * @throws NodeError with the reference's messages, for invalid paths, missing links and unknown names
   */
  resolve(path: string, options?: NodeReadOptions & RecordOptions): Promise<Resolved>;
  /** A block reader for one call. Uses the network unless `offline`. A missing block rejects with NODE_NOT_FOUND. */
  reader(options?: NodeReadOptions): ReadBlock;
  /** Announces in the background, if the node is online, that it provides the DAGs below these roots. */
  announce(roots: readonly CID[]): void;
  /** Resolves when everything put so far is on disk. Await it before acknowledging a write. */
  sync(): Promise<void>;
  stat(): Promise<NodeStat>;
  /** Whether the stores use more than `Datastore.StorageGCWatermark` percent of `Datastore.StorageMax`. */
  isNearlyFull(): Promise<boolean>;
  /**
   * Garbage collection: removes all blocks that are neither pinned nor otherwise needed, and yields what was removed and
   * what could not be. Running additions pause for it, however slow their source; only an import of archives
   * (`dag/import`) is waited for.
   */
  collect(signal?: AbortSignal): AsyncGenerator<Removed | NotRemoved, void, undefined>;
  /**
   * The repo as it is now, for a backup: its files stay readable until `release`, while the node goes on. Nothing that
   * they need is lost to a collection of garbage. Of a host of a shared store these are its configuration and keys alone.
   *
   * @throws NodeError when the stores are not files
   */
  hold(signal: AbortSignal): Promise<HeldData>;
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
