/**
 * What the operations of the node answer: programs and the pages of the dashboard read it. Sizes and totals are bytes, rates
 * are bytes a second, times are ISO 8601, CIDs are text.
 */

/** `GET /node`: who the node is, and where it is reached. */
export interface NodeStatus {
  /** Its peer id. */
  readonly id: string;
  readonly public_key: string;
  readonly agent: string;
  readonly protocol: string;
  /** Version of the API that it has, as clients ask for it. */
  readonly version: string;
  /** The network is open. */
  readonly online: boolean;
  /** It was opened to stay without a network. */
  readonly offline: boolean;
  /** Those that it tells others, each with its peer id; empty while it is not online. */
  readonly addresses: readonly string[];
  readonly listening: readonly string[];
  /** Protocols that it speaks, sorted. */
  readonly protocols: readonly string[];
  readonly repo: RepoState;
  /** Folder of the repo. */
  readonly path: string;
}

/** `GET /node/store`: the store that several hosts share, as this host sees it. */
export interface NodeStore {
  /** False where the node has its store to itself; nothing else is told then. */
  readonly is_shared: boolean;
  /** Those that it is made of: the object store, and the database. */
  readonly engines?: readonly StoreEngine[];
  /** On the disk of this host; `hits` and `misses` are blocks read from it and past it since the node was opened. */
  readonly cache?: { readonly size: number; readonly limit: number; readonly hits: number; readonly misses: number };
  /** Bytes that are not in the store yet, and changes that wait for their commit. */
  readonly waiting?: { readonly size: number; readonly changes: number };
  /** Requests to the object store since the node was opened, by kind: those that were sent again, and those that failed. */
  readonly requests?: readonly StoreRequests[];
  /** Since the node was opened. `calls`: changes that the commits were for. `sessions_lost`: how often this host was shut out. */
  readonly commits?: { readonly count: number; readonly calls: number; readonly sessions_lost: number };
  /** The last removal of garbage or blocks of which this host has heard the end; `removed` where this host led it. */
  readonly last_gc?: { readonly time: string; readonly removed?: number };
}

export interface StoreEngine {
  readonly kind: "objects" | "database";
  /** Without user and password. */
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

/** How much the repo holds. */
export interface RepoState {
  readonly size: number;
  /** `Datastore.StorageMax`; undefined without a limit. */
  readonly limit?: number;
  readonly blocks: number;
  readonly version: string;
}

/** `GET /node/figures`, and events of the topic `node_figures`, one a second. */
export interface NodeFiguresNow {
  readonly time: string;
  readonly online: boolean;
  /** Connected peers. */
  readonly peers: number;
  readonly rate_in: number;
  readonly rate_out: number;
  /** Since the node was opened. */
  readonly total_in: number;
  readonly total_out: number;
  /** At most a minute old. */
  readonly repo_size: number;
  readonly repo_limit?: number;
  readonly blocks: number;
  /** Blocks that it waits for. */
  readonly wants: number;
}

/** Figures of which an hour is kept. */
export type NodeSeries = "peers" | "rate_in" | "rate_out" | "repo_size" | "blocks";

/** `GET /node/history`: columns of equal length, the oldest sample first, as plots take them. */
export interface NodeHistory {
  /** Seconds between two samples. */
  readonly interval: number;
  /** When each sample was taken, seconds since 1970. */
  readonly time: readonly number[];
  /** Null where there was nothing to tell. */
  readonly series: Readonly<Record<NodeSeries, readonly (number | null)[]>>;
}

/** A connection to a peer. */
export interface PeerConnection {
  readonly id: string;
  /** Without the id. */
  readonly address: string;
  /** Its last part that carries bytes: `tcp`, `ws`, `p2p-circuit`. */
  readonly transport: string;
  /** Empty until the peer has told it. */
  readonly agent: string;
  /** Milliseconds there and back; undefined where it was not measured. */
  readonly latency?: number;
  readonly direction: "inbound" | "outbound";
  /** Protocols of the open streams, sorted; one for each stream. */
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
  /** Such as `connect ID success`. */
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

/** What takes long. Events of the topic `node_jobs` are such, whenever one has moved. */
export interface Job {
  readonly id: string;
  readonly kind: "gc" | "verify" | "pin";
  /** For people: `pin bafy...`. */
  readonly what: string;
  /** Who asked for it. */
  readonly by: string;
  readonly state: "running" | "done" | "failed" | "cancelled";
  readonly began: string;
  readonly ended?: string;
  /** How far it is. */
  readonly progress: JobProgress;
  /** Why it has failed. */
  readonly error?: string;
  /** What came of it. */
  readonly result?: Readonly<Record<string, string | number | readonly string[]>>;
}

export interface JobProgress {
  readonly done: number;
  /** Undefined where nobody knows. */
  readonly total?: number;
  readonly unit: "blocks";
}

/** `GET /node/pins`: a page of the pins, in the order of the node. */
export interface PinPage {
  /** Those that fit the search, on all pages. */
  readonly total: number;
  readonly offset: number;
  readonly pins: readonly Pin[];
}

export interface Pin {
  readonly cid: string;
  readonly type: "recursive" | "direct";
  /** Empty where it has none. */
  readonly name: string;
}

/** `GET /node/pins/{cid}`: how it is kept. */
export interface PinState {
  readonly cid: string;
  readonly type: "recursive" | "direct" | "indirect" | "none";
  /** Of an indirect one: a pin above it. */
  readonly through?: string;
  readonly name: string;
}

/** `GET /node/remote`. */
export interface RemoteServiceState {
  readonly service: string;
  readonly endpoint: string;
  /** Pins by status; undefined where the service does not answer, or was not asked. */
  readonly counts?: Readonly<Record<"queued" | "pinning" | "pinned" | "failed", number>>;
  /** False: it was asked, and did not answer as it must. */
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
  /** There are more than were asked for. */
  readonly has_more: boolean;
}

/** `GET /node/keys`. */
export interface NodeKey {
  readonly name: string;
  /** Its IPNS name. */
  readonly id: string;
  /** The node's own: it can be neither renamed nor removed. */
  readonly is_self: boolean;
  /** What was published with it, as this node knows. */
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
  /** Blocks that wait to be announced. */
  readonly provide_queue: number;
  /** All that it waits for. */
  readonly wants: number;
  /** At most 1,000 of them. */
  readonly wantlist: readonly string[];
  /** Connected peers that speak bitswap. */
  readonly partners: number;
  /** Those with the most exchanged blocks first; at most 200. */
  readonly ledgers: readonly Ledger[];
}

export interface Ledger {
  readonly peer: string;
  /** Sent divided by received. */
  readonly debt: number;
  readonly sent: number;
  readonly received: number;
  /** Blocks, in both directions. */
  readonly exchanged: number;
}

/** `GET /node/config`. */
export interface NodeConfig {
  /** The file. */
  readonly path: string;
  readonly keys: readonly NodeConfigKey[];
  /** Keys whose values are written and not in force. */
  readonly waiting: readonly { readonly key: string; readonly reason?: string }[];
}

export interface NodeConfigKey {
  readonly key: string;
  readonly help: string;
  /** As the reference page names it: `bool`, `texts`. */
  readonly type: string;
  /** As JSON text; undefined where it is not set, and for secrets. */
  readonly value?: string;
  /** As JSON text: what a new repo has; undefined where it has none. */
  readonly default?: string;
  /** When another value takes effect: as it is written, at the next start, or never, as this node does not use it. */
  readonly applies: "live" | "start" | "none";
  /** It is neither shown nor set here. */
  readonly is_secret: boolean;
}

/** `POST /node/config`: what is there now. */
export interface NodeConfigSet {
  readonly key: string;
  readonly value?: string;
  readonly is_in_force: boolean;
  /** Why not, where it could not be applied. */
  readonly reason?: string;
}

export type EntryType = "file" | "directory" | "symlink" | "unknown";

/** `GET /node/files`: a page of a directory of the mutable namespace, or of any path below `/ipfs`. */
export interface FilesPage {
  readonly path: string;
  readonly cid: string;
  /** Entries that fit the search, on all pages. */
  readonly total: number;
  readonly offset: number;
  readonly entries: readonly FilesEntry[];
}

export interface FilesEntry {
  readonly name: string;
  readonly cid: string;
  readonly type: EntryType;
  /** Bytes of a file; of anything else, and where the block is not here, what the directory says of all below it. */
  readonly size: number;
  /** Its first block is on this machine. */
  readonly is_here: boolean;
}

/** `GET /node/files/stat`. */
export interface FilesStat {
  readonly path: string;
  readonly cid: string;
  readonly type: "file" | "directory";
  /** Bytes of a file; 0 for a directory. */
  readonly size: number;
  /** The block and all below it. */
  readonly total_size: number;
  /** Links of the block. */
  readonly links: number;
  /** The Content-Type that its content is answered with. */
  readonly media_type?: string;
}

/** What changed the mutable namespace: where something is now, and what. */
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
  /** As it was asked for, with the CID in place of a name. */
  readonly path: string;
  readonly cid: string;
  /** The rest of the path, within the block. */
  readonly remainder: string;
  readonly version: 0 | 1;
  readonly codec: string;
  readonly hash: { readonly name: string; readonly code: number /** In hex. */; readonly digest: string };
  /** Of the block. */
  readonly size: number;
  /** It was on this machine before it was asked for. */
  readonly was_here: boolean;
  readonly links: DagLinks;
  /** What UnixFS says of it, where it is a node of that. */
  readonly unixfs?: { readonly type: string; readonly size: number };
  readonly data: DagData;
}

export interface DagLinks {
  /** All links of the block. */
  readonly total: number;
  readonly offset: number;
  readonly items: readonly {
    readonly name: string;
    readonly cid: string /** All below it; 0 where the codec does not say it. */;
    readonly size: number;
  }[];
}

/** What a block holds, cut where it is long. */
export interface DagData {
  /** `json` as DAG-JSON has it, `text` where all is UTF-8, else `hex`. */
  readonly form: "json" | "text" | "hex";
  readonly text: string;
  /** There is more. */
  readonly is_cut: boolean;
  /** All of it. */
  readonly size: number;
}
