/** The parts of a node, joined: what its surface, its mount and its migration stand on. */
import type { CID } from "multiformats/cid";
import type { NodeReadOptions, ReadBlock } from "./content/dag/reader.ts";
import type { Namespace } from "./content/mfs/namespace.ts";
import type { NotRemoved, Removed } from "./content/pins/gc.ts";
import type { Pins } from "./content/pins/pins.ts";
import type { Resolved } from "./content/resolver/resolve.ts";
import type { Stores } from "./migration/open_stores/engines.ts";
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
import type { SharedLock } from "./util/async/shared_lock.ts";
import type { FailureCode, FailureKind } from "./util/errors.ts";
import type { NodeLog } from "./util/log.ts";

/** The reference has two texts; most commands use the first. */
export type OfflineCode = Extract<FailureCode, "OFFLINE_COMMAND" | "OFFLINE">;

export interface NodeOptions extends RepoOptions {
  /**
   * Profiles for a repo that is made now, separated by commas. Without any, and without a `document`, `local`: the
   * public network is only for whoever asks for it. "" is a repo as the reference makes it.
   */
  readonly profile?: string | undefined;
  /** Folder of the repo. */
  readonly repo: string;
  /** Never use a network. */
  readonly offline?: boolean | undefined;
  /** Opens other stores than those of the repo; the node closes them. */
  readonly stores?: (repo: Repo) => Promise<Stores>;
  /** Messages are published and subscribed to; not unless this is true. */
  readonly pubsub?: boolean | undefined;
  /** Names are published and followed over publish and subscribe, too, where that is on. */
  readonly namesOverPubsub?: boolean | undefined;
  /** Told in a sentence of what was put right while the stores were opened, and of what the network cannot do. */
  readonly onNotice?: (sentence: string) => void;
  /** Ends the opening, which may have whole stores to copy: it fails with the signal's reason then. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The parts that the client interface stands on, for programs that need more than it gives: stores, locks, readers with
 * sessions. `await using` closes it.
 */
export interface LowLevelNode extends AsyncDisposable {
  /** Folder, configuration document and identity. */
  readonly repo: Repo;
  readonly blocks: BlockService;
  /**
   * All that is no block. Keys begin with a prefix for who owns them: `pins/`, `files/`, ...; a module keeps its own with
   * `prefixedStore(node.metadata, "modules/<name>/")`.
   */
  readonly metadata: MetadataStore;
  readonly pins: Pins;
  /** The mutable namespace. */
  readonly files: Namespace;
  /** Undefined unless references to files or URLs are switched on. */
  readonly filestore: Filestore | undefined;
  /** As `blocks`, but it stores the bytes of every block, even if the filestore refers to it. */
  readonly wholeBlocks: BlockService;
  /** Folder for what is too much for memory while a call goes on; empty otherwise. */
  readonly scratch: string;
  /** The keys of names, but for the node's own. */
  readonly keys: Keystore;
  readonly names: Names;
  /** Pins at services. */
  readonly remotePins: RemotePins;
  /** Keeps the root of the files pinned at services, by itself while the network is open. */
  readonly mfsPolicy: MfsPolicy;
  /** The node as folders of this machine. */
  readonly mounts: Mounts;
  /** Garbage collection holds it exclusively; whoever puts blocks and pins them holds a share meanwhile. */
  readonly lock: SharedLock;
  readonly log: NodeLog;
  /** It was told to stay without a network. */
  readonly offline: boolean;
  /** The network is in use, or is being opened. */
  readonly online: boolean;
  /**
   * Opens the network in the way that the configuration says; resolves when that is done, at once when `offline`. Only
   * then does the node talk to others. May be called again, also when it failed.
   *
   * @throws NodeError of a configuration that says what cannot be
   */
  goOnline(): Promise<void>;
  /**
   * The network, once it is open. `refusal` says whose fault it is that there is none, `text` with which words.
   *
   * @throws NodeError while the node is offline
   */
  network(refusal?: FailureKind, text?: OfflineCode): Promise<Network>;
  /**
   * From the text of a content path to the block that it leads to.
   *
   * @throws NodeError with the reference's texts: invalid paths, missing links, names that nobody knows
   */
  resolve(path: string, options?: NodeReadOptions & RecordOptions): Promise<Resolved>;
  /** Reads blocks for one call, from the network too unless `offline`. A missing block rejects with NODE_NOT_FOUND. */
  reader(options?: NodeReadOptions): ReadBlock;
  /** Has others told that what lies below these blocks can be had here: in the background, if the node is online. */
  announce(roots: readonly CID[]): void;
  /** Resolves when all that was put before is on the disk: to be awaited before a final answer. */
  sync(): Promise<void>;
  stat(): Promise<NodeStat>;
  /** Whether the stores take more of `Datastore.StorageMax` than `Datastore.StorageGCWatermark` percent. */
  isNearlyFull(): Promise<boolean>;
  /**
   * Takes away all that nothing keeps: what was removed, and what went wrong. Whoever adds gives way to it, however slow
   * the source, and goes on behind it; only an import of archives (`dag/import`) is waited for to its end.
   */
  collect(signal?: AbortSignal): AsyncGenerator<Removed | NotRemoved, void, undefined>;
  /** Resolves when nothing is open any more and the repo is unlocked. May be called again. */
  close(): Promise<void>;
}

export interface NodeStat {
  /** Stored forms of blocks. */
  readonly blocks: number;
  /** Bytes that the stores take on the disk. */
  readonly bytes: number;
  /** `Datastore.StorageMax` in bytes; undefined where the configuration has none. */
  readonly storageMax: number | undefined;
}
