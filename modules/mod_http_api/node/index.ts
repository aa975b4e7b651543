/** The node behind the commands. It works without HTTP: `import { createNode } from "modhost/node"`. */
import { readdir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CID } from "multiformats/cid";
import { SharedLock } from "./async/lock.ts";
import { Queue } from "./async/queue.ts";
import { Blocks, type ReadOptions } from "./blocks/blocks.ts";
import { nodeReader, type ReadBlock } from "./dag/reader.ts";
import { type FailureCode, type FailureKind, failure, failures, NodeError } from "./errors.ts";
import { Namespace } from "./files/namespace.ts";
import { flush } from "./files/operations.ts";
import { namespacePath } from "./files/path.ts";
import { Filestore, filestoreSettings } from "./filestore/filestore.ts";
import type { Vault } from "./ingest/ingest.ts";
import { Keystore } from "./keys/keystore.ts";
import { NodeLog } from "./log.ts";
import type { MetadataStore } from "./metadata/store.ts";
import { Mounts, unmountStale } from "./mount/mounts.ts";
import { Names } from "./names/names.ts";
import type { RecordOptions } from "./names/resolver.ts";
import type { Network } from "./network.ts";
import { type ContentPath, parsePath } from "./path/path.ts";
import { type Resolved, resolvePath } from "./path/resolve.ts";
import { collectGarbage, type NotRemoved, type Removed } from "./pins/collect.ts";
import { Pins } from "./pins/pins.ts";
import { FilesPolicy } from "./remote_pins/files_policy.ts";
import { RemotePins } from "./remote_pins/remote_pins.ts";
import { knownServices } from "./remote_pins/services.ts";
import { openRepo, type Repo, type RepoOptions } from "./repo/repo.ts";
import { seed } from "./seed.ts";
import { parseSize } from "./size.ts";
import type { Stores } from "./stores/engines.ts";
import { openStores } from "./stores/open.ts";

export { ingest } from "./ingest/ingest.ts";
export { addSettings } from "./ingest/settings.ts";
export { type MigrationOptions, type MigrationProgress, migrateRepo } from "./migrate/migrate.ts";
export { parseCid } from "./cid/text.ts";
export type { MetadataStore, MetadataWriter } from "./metadata/store.ts";
export { roomOf } from "./metadata/room.ts";
export { type PeerAddress, parsePeerAddress } from "./peers/multiaddr.ts";
export type { ConfigChange, ConfigFile } from "./repo/config.ts";
export type { Identity } from "./repo/identity.ts";
export { openFile } from "./unixfs/open.ts";
export { readFile } from "./unixfs/read.ts";
export type { ContentPath, Repo, Resolved, Stores };

/** What `module.depends("http_api")` gives the modules of a host: the node that answers the calls. */
export interface NodeModule {
  readonly node: Node;
}

/** The reference has two texts; most commands use the first. */
export type OfflineCode = Extract<FailureCode, "OFFLINE_COMMAND" | "OFFLINE">;

export interface NodeOptions extends RepoOptions {
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
}

export interface Node {
  /** Folder, configuration document and identity. */
  readonly repo: Repo;
  readonly blocks: Blocks;
  /**
   * All that is no block. Keys begin with the name of their room: `pins/`, `files/`, ...; a module keeps its own with
   * `roomOf(node.metadata, "modules/<name>/")`.
   */
  readonly metadata: MetadataStore;
  readonly pins: Pins;
  /** The mutable namespace. */
  readonly files: Namespace;
  /** Undefined unless references to files or URLs are switched on. */
  readonly filestore: Filestore | undefined;
  /** To add to this node so that blocks are stored, even if the filestore refers to them. */
  readonly direct: Vault;
  /** Folder for what is too much for memory while a call goes on; empty otherwise. */
  readonly scratch: string;
  /** The keys of names, but for the node's own. */
  readonly keys: Keystore;
  readonly names: Names;
  /** Pins at services. */
  readonly remotePins: RemotePins;
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
  resolve(path: string, options?: ReadOptions & RecordOptions): Promise<Resolved>;
  /** Reads blocks for one call, from the network too unless `offline`. A missing block rejects with NODE_NOT_FOUND. */
  reader(options?: ReadOptions): ReadBlock;
  /** Has others told that what lies below these blocks can be had here: in the background, if the node is online. */
  announce(roots: readonly CID[]): void;
  /** Resolves when all that was put before is on the disk: to be awaited before a final answer. */
  sync(): Promise<void>;
  stat(): Promise<NodeStat>;
  /** Whether the stores take more of `Datastore.StorageMax` than `Datastore.StorageGCWatermark` percent. */
  isNearlyFull(): Promise<boolean>;
  /**
   * Takes away all that nothing keeps: what was removed, and what went wrong. It waits for those who add and pin, and
   * they wait for it.
   */
  collect(signal?: AbortSignal): AsyncGenerator<Removed | NotRemoved, void, undefined>;
  /** Resolves when nothing is open any more and the repo is unlocked. May be called again. */
  close(): Promise<void>;
}

/** Percent; what 0 in the configuration stands for. */
const defaultWatermark = 90;

export interface NodeStat {
  /** Stored forms of blocks. */
  readonly blocks: number;
  /** Bytes that the stores take on the disk. */
  readonly bytes: number;
  /** `Datastore.StorageMax` in bytes; undefined where the configuration has none. */
  readonly storageMax: number | undefined;
}

/** Opens a repo, made when it is not there, and all that the node keeps in it. @throws NodeError as `openRepo` */
export async function createNode(options: NodeOptions): Promise<Node> {
  const repo = await openRepo(options.repo, options);
  const closing: (() => Promise<void>)[] = [() => repo.close()];
  try {
    await unmountStale(repo);
    const { blocks, metadata } = await (options.stores ?? ((own) => openStores(own, options.onNotice)))(repo);
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

const scratchOf = ({ stores }: Repo): string => join(dirname(stores.metadata), "scratch");

/** One after the other, all of them whatever fails; then the first failure. */
async function closeAll(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failed: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failed.push(error));
  if (failed.length > 0) throw failed[0];
}

class LocalNode implements Node {
  readonly repo: Repo;
  readonly blocks: Blocks;
  readonly metadata: MetadataStore;
  readonly pins: Pins;
  readonly files: Namespace;
  readonly filestore: Filestore | undefined;
  readonly direct: Vault;
  readonly scratch: string;
  readonly keys: Keystore;
  readonly lock = new SharedLock();
  readonly log = new NodeLog();
  readonly offline: boolean;
  readonly names: Names;
  readonly remotePins: RemotePins;
  readonly mounts: Mounts;
  readonly #filesPolicy: FilesPolicy;
  readonly #pubsub: boolean;
  readonly #namesOverPubsub: boolean;
  readonly #onNotice: NodeOptions["onNotice"];
  readonly #closing: readonly (() => Promise<void>)[];
  #network: Promise<Network> | undefined;
  #closed: Promise<void> | undefined;

  constructor(
    repo: Repo,
    { blocks, metadata }: Stores,
    options: NodeOptions,
    closing: readonly (() => Promise<void>)[],
  ) {
    this.repo = repo;
    const referring = filestoreSettings(repo);
    this.filestore = referring && new Filestore(blocks, metadata, referring);
    this.blocks = new Blocks(this.filestore ?? blocks);
    this.blocks.hashOnRead = repo.config.value("Datastore.HashOnRead");
    this.metadata = metadata;
    this.pins = new Pins(this.blocks, metadata, this.lock);
    const sharded = () => repo.config.value("Experimental.ShardingEnabled");
    this.files = new Namespace({ blocks: this.blocks, metadata, lock: this.lock, sharded, log: this.log });
    this.scratch = scratchOf(repo);
    const { pins, lock, scratch } = this;
    const sync = () => this.sync();
    const announce = (roots: readonly CID[]) => this.announce(roots);
    this.direct = this.filestore ? { blocks: new Blocks(blocks), pins, lock, scratch, sync, announce } : this;
    this.keys = new Keystore(join(repo.path, "keystore"), repo.identity.peerId);
    this.offline = options.offline ?? false;
    this.names = new Names({
      repo,
      metadata,
      keys: this.keys,
      log: this.log,
      kept: (key) => this.#keptFor(key),
      opened: async () => this.#network?.catch(() => undefined),
    });
    const peers = async () => (await this.#network?.catch(() => undefined))?.peers;
    this.remotePins = new RemotePins({ config: repo.config, log: this.log, peers });
    this.#filesPolicy = new FilesPolicy({
      pins: this.remotePins,
      services: () => knownServices(repo.config),
      root: (signal) => flush(this.files, namespacePath("/"), { signal }),
      usualName: `policy/${repo.identity.peerId}/mfs`,
      log: this.log,
    });
    this.mounts = new Mounts({
      ...{ repo, metadata, sharded, lock, blocks: this.blocks, log: this.log, names: this.names },
      reader: (reading) => this.reader(reading),
      keys: () => this.keys.list(),
      blockAt: async (path) => (await this.resolve(path)).cid,
    });
    this.#pubsub = options.pubsub ?? false;
    this.#namesOverPubsub = options.namesOverPubsub ?? false;
    this.#onNotice = options.onNotice;
    this.#closing = closing;
  }

  get online(): boolean {
    return this.#network !== undefined;
  }

  async goOnline(): Promise<void> {
    if (this.offline) return;
    if (this.#closed !== undefined) throw failure("STORE_CLOSED");
    this.#network ??= this.#open();
    await this.#network;
  }

  async #open(): Promise<Network> {
    try {
      // Loaded here alone: a node that stays offline does not pay for it.
      const { openNetwork } = await import("./network.ts");
      const { repo, blocks, metadata, pins, names, log } = this;
      const [pubsub, namesOverPubsub, onNotice] = [this.#pubsub, this.#namesOverPubsub, this.#onNotice];
      const parts = { repo, blocks, metadata, pins, names, pubsub, namesOverPubsub, log, onNotice };
      const network = await openNetwork(parts);
      this.blocks.source = network.exchange;
      this.#filesPolicy.start();
      return network;
    } catch (error) {
      this.#network = undefined;
      throw error;
    }
  }

  async network(kind: FailureKind = "failure", code: OfflineCode = "OFFLINE_COMMAND"): Promise<Network> {
    if (this.#network === undefined) throw new NodeError(failures[code], { code, kind });
    return this.#network;
  }

  announce(roots: readonly CID[]): void {
    this.#network?.then(({ routing }) => routing.announce(roots)).catch(() => undefined);
  }

  async goOffline(): Promise<void> {
    const network = await this.#network?.catch(() => undefined);
    await this.#filesPolicy.stop();
    this.blocks.source = undefined;
    await network?.close();
  }

  async resolve(path: string, options: ReadOptions & RecordOptions = {}): Promise<Resolved> {
    const parsed = parsePath(path);
    return resolvePath(parsed.namespace === "ipns" ? await this.#named(parsed, options) : parsed, this.reader(options));
  }

  async #named({ root, segments }: ContentPath, options: RecordOptions): Promise<ContentPath> {
    const { signal, offline, count, timeout } = options;
    const path = await this.names.resolve(root, { signal, offline, count, timeout });
    return parsePath([path, ...segments].join("/"));
  }

  /** A record that the routing system keeps here for others. */
  async #keptFor(key: Uint8Array): Promise<Uint8Array | undefined> {
    const network = await this.#network?.catch(() => undefined);
    if (network !== undefined) return network.routing.kept(key);
    const { Records } = await import("./routing/records.ts");
    return new Records({ metadata: this.metadata, self: this.repo.identity.peerId }).value(key);
  }

  reader(options: ReadOptions = {}): ReadBlock {
    return nodeReader(this.blocks, options);
  }

  sync(): Promise<void> {
    return this.blocks.store.sync();
  }

  async stat(): Promise<NodeStat> {
    const [{ blocks, bytes }, metadata] = await Promise.all([
      this.blocks.store.stat(),
      bytesIn(this.repo.stores.metadata),
    ]);
    const max = this.repo.config.value("Datastore.StorageMax");
    return { blocks, bytes: bytes + metadata, storageMax: max === "" ? undefined : parseSize(max) };
  }

  async isNearlyFull(): Promise<boolean> {
    const { bytes, storageMax } = await this.stat();
    const percent = this.repo.config.value("Datastore.StorageGCWatermark") || defaultWatermark;
    return storageMax !== undefined && bytes > (storageMax / 100) * percent;
  }

  async *collect(signal?: AbortSignal): AsyncGenerator<Removed | NotRemoved, void, undefined> {
    const told = new Queue<Removed | NotRemoved>();
    const leaving = new AbortController();
    const over = this.#collect(told, AbortSignal.any([leaving.signal, ...(signal ? [signal] : [])]));
    try {
      yield* told;
    } finally {
      leaving.abort();
      await over;
    }
  }

  /** At its own pace: whoever reads slowly keeps nobody from writing. Never rejects. */
  async #collect(told: Queue<Removed | NotRemoved>, signal: AbortSignal): Promise<void> {
    try {
      const release = await this.lock.exclude(signal);
      try {
        const partial = [...(await this.files.roots()), ...(await this.mounts.roots())];
        await collectGarbage(this.blocks, this.pins, (result) => told.put(result), { signal, partial });
      } finally {
        release();
      }
      await this.blocks.store.compact(signal);
      told.end();
    } catch (reason) {
      told.fail(reason);
    }
  }

  close(): Promise<void> {
    this.#closed ??= closeAll(this.#closing);
    return this.#closed;
  }
}

/** Of the files of a folder; none when there is no such folder. */
async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
