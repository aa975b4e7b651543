/**
 * Types of the responses of the node's operations, for programs and the pages of the dashboard.
 * Sizes and totals are in bytes, rates in bytes per second, times in ISO 8601, and CIDs are text.
 */

/** `GET /node`: the node's identity and addresses. */
export interface NodeStatus {
  /** Peer id. */
  readonly id: string;
  readonly public_key: string;
  readonly agent: string;
  readonly protocol: string;
  /** Version of the RPC API, as clients request it. */
  readonly version: string;
  /** Whether the network is open. */
  readonly online: boolean;
  /** Whether the node was opened without a network. */
  readonly offline: boolean;
  /** Addresses that it announces to others, each with its peer id; empty while it is not online. */
  readonly addresses: readonly string[];
  readonly listening: readonly string[];
  /** Protocols that it supports, sorted. */
  readonly protocols: readonly string[];
  readonly repo: RepoState;
  /** Folder of the repo. */
  readonly path: string;
}

/** `GET /node/store`: the store that several hosts share, as this host sees it. */
export interface NodeStore {
  /** False if the node does not share its store; the other fields are then missing. */
  readonly is_shared: boolean;
  /** The object store and the database that the store consists of. */
  readonly engines?: readonly StoreEngine[];
  /**
   * The cache on the disk of this host. `hits` and `misses` count block reads since the node was
   * opened.
   */
  readonly cache?: { readonly size: number; readonly limit: number; readonly hits: number; readonly misses: number };
  /** Bytes that have not been uploaded yet, and changes that wait for their commit. */
  readonly waiting?: { readonly size: number; readonly changes: number };
  /** Requests to the object store by kind, since the node was opened, with retries and failures. */
  readonly requests?: readonly StoreRequests[];
  /**
   * Counted since the node was opened. `calls`: changes in the commits. `sessions_lost`: how often
   * this host lost its session.
   */
  readonly commits?: { readonly count: number; readonly calls: number; readonly sessions_lost: number };
  /**
   * The last removal of garbage or blocks that this host knows has ended; `removed` is set if this
   * host led it.
   */
  readonly last_gc?: { readonly time: string; readonly removed?: number };
}

export interface StoreEngine {
  readonly kind: "objects" | "database";
  /** Address without user and password. */
  readonly place: string;
  /** Why it cannot be reached; undefined while it can. */
  readonly problem?: string;
}

export interface StoreRequests {
  readonly kind: string;
  readonly count: number;
  readonly repeated: number;
  readonly failed: number;
}

/** How much the repo stores. */
export interface RepoState {
  readonly size: number;
  /** `Datastore.StorageMax`; undefined without a limit. */
  readonly limit?: number;
  readonly blocks: number;
  readonly version: string;
}

/** `GET /node/figures`, and events of the topic `node_figures`, one per second. */
export interface NodeFiguresNow {
  readonly time: string;
  readonly online: boolean;
  /** Connected peers. */
  readonly peers: number;
  readonly rate_in: number;
  readonly rate_out: number;
  /** Counted since the node was opened. */
  readonly total_in: number;
  readonly total_out: number;
  /** At most a minute old. */
  readonly repo_size: number;
  readonly repo_limit?: number;
  readonly blocks: number;
  /** Number of blocks that it waits for. */
  readonly wants: number;
}

/** Metrics with an hour of history. */
export type NodeSeries = "peers" | "rate_in" | "rate_out" | "repo_size" | "blocks";

/** `GET /node/history`: columns of equal length, the oldest sample first, ready for plots. */
export interface NodeHistory {
  /** Seconds between two samples. */
  readonly interval: number;
  /** The time of each sample, in seconds since 1970. */
  readonly time: readonly number[];
  /** A value is null where none was measured. */
  readonly series: Readonly<Record<NodeSeries, readonly (number | null)[]>>;
}

/** A connection to a peer. */
export interface PeerConnection {
  readonly id: string;
  /** Without the peer id. */
  readonly address: string;
  /** The last transport in the address: `tcp`, `ws`, `p2p-circuit`. */
  readonly transport: string;
  /** Empty until the peer has sent it. */
  readonly agent: string;
  /** Round-trip time in milliseconds; undefined if it was not measured. */
  readonly latency?: number;
  readonly direction: "inbound" | "outbound";
  /** Protocols of the open streams, sorted, with one entry per stream. */
  readonly streams: readonly string[];
  readonly opened: string;
}

/** `GET /node/peers`. */
export interface PeerList {
  readonly online: boolean;
  /** Sorted by address. */
  readonly peers: readonly PeerConnection[];
}

/** `POST /node/peers/connect` and `/disconnect`. */
export interface PeerAnswer {
  /** A text such as `connect ID success`. */
  readonly message: string;
}

/** `GET /node/bandwidth`. */
export interface Bandwidth {
  readonly total: Traffic;
  /** The busiest first; at most 50. */
  readonly protocols: readonly (Traffic & { readonly protocol: string })[];
}

export interface Traffic {
  readonly total_in: number;
  readonly total_out: number;
  readonly rate_in: number;
  readonly rate_out: number;
}

/** Long-running work. The topic `node_jobs` emits a job whenever it changes. */
export interface Job {
  readonly id: string;
  readonly kind: "gc" | "verify" | "pin";
  /** A description for people: `pin bafy...`. */
  readonly what: string;
  /** Name of the caller who started it. */
  readonly by: string;
  readonly state: "running" | "done" | "failed" | "cancelled";
  readonly began: string;
  readonly ended?: string;
  /** How far it is. */
  readonly progress: JobProgress;
  /** Why it has failed. */
  readonly error?: string;
  /** Result of the job. */
  readonly result?: Readonly<Record<string, string | number | readonly string[]>>;
}

export interface JobProgress {
  readonly done: number;
  /** Undefined if the total is unknown. */
  readonly total?: number;
  readonly unit: "blocks";
}

/** `GET /node/pins`: a page of the pins, in the order of the node. */
export interface PinPage {
  /** Number of pins that match the search, on all pages. */
  readonly total: number;
  readonly offset: number;
  readonly pins: readonly Pin[];
}

export interface Pin {
  readonly cid: string;
  readonly type: "recursive" | "direct";
  /** Empty if the pin has no name. */
  readonly name: string;
}

/** `GET /node/pins/{cid}`: how the block is pinned. */
export interface PinState {
  readonly cid: string;
  readonly type: "recursive" | "direct" | "indirect" | "none";
  /** For an indirect pin: a pin above it. */
  readonly through?: string;
  readonly name: string;
}

/** `GET /node/remote`. */
export interface RemoteServiceState {
  readonly service: string;
  readonly endpoint: string;
  /** Pins by status; undefined if the service did not respond, or was not requested. */
  readonly counts?: Readonly<Record<"queued" | "pinning" | "pinned" | "failed", number>>;
  /** False if the service was contacted and did not respond correctly. */
  readonly is_valid?: boolean;
}

export interface RemotePinState {
  readonly cid: string;
  readonly name: string;
  readonly status: "queued" | "pinning" | "pinned" | "failed" | "";
}

/** `GET /node/remote/{service}/pins`. */
export interface RemotePinPage {
  /** The newest first. */
  readonly pins: readonly RemotePinState[];
  /** Whether more pins match than were requested. */
  readonly has_more: boolean;
}

/** `GET /node/keys`. */
export interface NodeKey {
  readonly name: string;
  /** The IPNS name of the key. */
  readonly id: string;
  /** Whether this is the node's own key, which can be neither renamed nor removed. */
  readonly is_self: boolean;
  /** The path that this node knows to be published with the key. */
  readonly value?: string;
}

/** `POST /node/names/publish` and `GET /node/names/resolve`. */
export interface NamedValue {
  readonly name: string;
  /** A path such as `/ipfs/CID`. */
  readonly value: string;
}

/** `GET /node/bitswap`. */
export interface BitswapState {
  readonly online: boolean;
  readonly blocks_received: number;
  readonly blocks_sent: number;
  readonly data_received: number;
  readonly data_sent: number;
  readonly duplicate_blocks: number;
  readonly duplicate_data: number;
  /** Number of blocks that wait to be announced. */
  readonly provide_queue: number;
  /** Number of blocks that the node waits for. */
  readonly wants: number;
  /** At most 1,000 of the blocks that the node waits for. */
  readonly wantlist: readonly string[];
  /** Number of connected peers that support bitswap. */
  readonly partners: number;
  /** The ledgers with the most exchanged blocks first; at most 200. */
  readonly ledgers: readonly Ledger[];
}

export interface Ledger {
  readonly peer: string;
  /** Bytes sent divided by bytes received. */
  readonly debt: number;
  readonly sent: number;
  readonly received: number;
  /** Number of blocks in both directions. */
  readonly exchanged: number;
}

/** `GET /node/config`. */
export interface NodeConfig {
  /** Path of the config file. */
  readonly path: string;
  readonly keys: readonly NodeConfigKey[];
  /** Keys whose values are saved but not in force yet. */
  readonly waiting: readonly { readonly key: string; readonly reason?: string }[];
}

export interface NodeConfigKey {
  readonly key: string;
  readonly help: string;
  /** The type as the reference page names it: `bool`, `texts`. */
  readonly type: string;
  /** JSON text; undefined for secrets and for keys without a value. */
  readonly value?: string;
  /** The value in a new repo as JSON text; undefined if it has none. */
  readonly default?: string;
  /**
   * When a change takes effect: at once, at the next start, or never, because this node does not
   * use the key.
   */
  readonly applies: "live" | "start" | "none";
  /** Whether the key can be neither shown nor set here. */
  readonly is_secret: boolean;
}

/** `POST /node/config`: the new state of the key. */
export interface NodeConfigSet {
  readonly key: string;
  readonly value?: string;
  readonly is_in_force: boolean;
  /** Why the value could not be applied. */
  readonly reason?: string;
}

export type EntryType = "file" | "directory" | "symlink" | "unknown";

/**
 * `GET /node/files`: a page of a directory of the mutable namespace, or of any path below `/ipfs`.
 */
export interface FilesPage {
  readonly path: string;
  readonly cid: string;
  /** Number of entries that match the search, on all pages. */
  readonly total: number;
  readonly offset: number;
  readonly entries: readonly FilesEntry[];
}

export interface FilesEntry {
  readonly name: string;
  readonly cid: string;
  readonly type: EntryType;
  /**
   * Bytes of a file. For anything else, and for a block that is not on this machine, the total size
   * recorded in the directory.
   */
  readonly size: number;
  /** Whether the first block is on this machine. */
  readonly is_here: boolean;
}

/** `GET /node/files/stat`. */
export interface FilesStat {
  readonly path: string;
  readonly cid: string;
  readonly type: "file" | "directory";
  /** Bytes of a file; 0 for a directory. */
  readonly size: number;
  /** Size of the block and everything below it. */
  readonly total_size: number;
  /** Number of links in the block. */
  readonly links: number;
  /** The Content-Type of responses with its content. */
  readonly media_type?: string;
}

/** A change of the mutable namespace: the path and its new content. */
export interface FilesChange {
  readonly path: string;
  readonly cid?: string;
}

/** `POST /node/files/content`: what was uploaded. */
export interface Uploaded {
  readonly path: string;
  readonly cid: string;
  /** Bytes that were read. */
  readonly size: number;
}

/** `GET /node/dag`: one block. */
export interface DagNode {
  /** The requested path, with the CID in place of a name. */
  readonly path: string;
  readonly cid: string;
  /** The rest of the path, which leads into the block. */
  readonly remainder: string;
  readonly version: 0 | 1;
  readonly codec: string;
  readonly hash: { readonly name: string; readonly code: number /** In hex. */; readonly digest: string };
  /** Size of the block. */
  readonly size: number;
  /** Whether the block was on this machine before the request. */
  readonly was_here: boolean;
  readonly links: DagLinks;
  /** The UnixFS properties, if the block is a UnixFS node. */
  readonly unixfs?: { readonly type: string; readonly size: number };
  readonly data: DagData;
}

export interface DagLinks {
  /** Number of all links in the block. */
  readonly total: number;
  readonly offset: number;
  readonly items: readonly {
    readonly name: string;
    readonly cid: string;
    /** The size of the target and everything below it; 0 if the codec does not contain it. */
    readonly size: number;
  }[];
}

/** The content of a block, cut if it is long. */
export interface DagData {
  /** `json` is DAG-JSON, `text` means that the content is valid UTF-8, else `hex`. */
  readonly form: "json" | "text" | "hex";
  readonly text: string;
  /** Whether the text was cut. */
  readonly is_cut: boolean;
  /** Size of the full content. */
  readonly size: number;
}
