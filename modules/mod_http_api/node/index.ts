/** The node behind the commands. It works without HTTP: `import { createNode } from "modhost/node"`. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Blocks, type ReadOptions } from "./blocks/blocks.ts";
import { openSegmentStore } from "./blocks/segments/store.ts";
import type { BlockStore } from "./blocks/store.ts";
import { nodeReader, type ReadBlock } from "./dag/reader.ts";
import { failure } from "./errors.ts";
import { Namespace } from "./files/namespace.ts";
import { Filestore, filestoreSettings } from "./filestore/filestore.ts";
import type { Vault } from "./ingest/ingest.ts";
import { Keystore } from "./keys/keystore.ts";
import { SharedLock } from "./lock.ts";
import { NodeLog } from "./log.ts";
import { openLmdbMetadata } from "./metadata/lmdb.ts";
import type { MetadataStore } from "./metadata/store.ts";
import { type ContentPath, parsePath } from "./path/path.ts";
import { type Resolved, resolvePath } from "./path/resolve.ts";
import { collectGarbage, type NotRemoved, type Removed } from "./pins/collect.ts";
import { Pins } from "./pins/pins.ts";
import { openRepo, type Repo, type RepoOptions } from "./repo/repo.ts";
import { seed } from "./seed.ts";
import { parseSize } from "./size.ts";

export { ingest } from "./ingest/ingest.ts";
export { addSettings } from "./ingest/settings.ts";
export type { ConfigChange, ConfigFile } from "./repo/config.ts";
export type { Identity } from "./repo/identity.ts";
export { openFile } from "./unixfs/open.ts";
export { readFile } from "./unixfs/read.ts";
export type { ContentPath, Repo, Resolved };

/** From a path below /ipns to one below /ipfs or /ipld. */
export type ResolveName = (path: ContentPath, options: ReadOptions) => Promise<ContentPath>;

export interface Stores {
  readonly blocks: BlockStore;
  readonly metadata: MetadataStore;
}

export interface NodeOptions extends RepoOptions {
  /** Folder of the repo. */
  readonly repo: string;
  /** Never use a network. */
  readonly offline?: boolean | undefined;
  /** Opens other stores than those of the repo; the node closes them. */
  readonly stores?: (repo: Repo) => Promise<Stores>;
  /** What a name stands for; without it paths below /ipns are refused with OFFLINE. */
  readonly resolveName?: ResolveName | undefined;
  /** Told in a sentence of what was put right while the stores were opened. */
  readonly onNotice?: (sentence: string) => void;
}

export interface Node {
  /** Folder, configuration document and identity. */
  readonly repo: Repo;
  readonly blocks: Blocks;
  /** All that is no block. Keys begin with the name of their room: `pins/`, `files/`, ... */
  readonly metadata: MetadataStore;
  readonly pins: Pins;
  /** The mutable namespace. */
  readonly files: Namespace;
  /** Undefined unless references to files or URLs are switched on. */
  readonly filestore: Filestore | undefined;
  /** To add to this node so that blocks are stored, even if the filestore refers to them. */
  readonly direct: Vault;
  /** The keys of names, but for the node's own. */
  readonly keys: Keystore;
  /** Garbage collection holds it exclusively; whoever puts blocks and pins them holds a share meanwhile. */
  readonly lock: SharedLock;
  readonly log: NodeLog;
  /** It was told to stay without a network. */
  readonly offline: boolean;
  /** The network is in use. */
  readonly online: boolean;
  /**
   * From the text of a content path to the block that it leads to.
   *
   * @throws NodeError with the reference's texts: invalid paths, missing links, names while offline
   */
  resolve(path: string, options?: ReadOptions): Promise<Resolved>;
  /** Reads blocks for one call, from the network too unless `offline`. A missing block rejects with NODE_NOT_FOUND. */
  reader(options?: ReadOptions): ReadBlock;
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
    const { blocks, metadata } = await (options.stores ?? ((own) => openStores(own, options)))(repo);
    closing.unshift(
      () => blocks.close(),
      () => metadata.close(),
    );
    const node = new LocalNode(repo, { blocks, metadata }, options, closing);
    closing.unshift(() => node.files.close());
    await seed(node);
    return node;
  } catch (error) {
    await closeAll(closing).catch(() => undefined);
    throw error;
  }
}

async function openStores({ stores }: Repo, { onNotice }: NodeOptions): Promise<Stores> {
  // A damaged block is never handed on: checking happens on the thread pool, beside the reading of the next ones.
  const notice = onNotice === undefined ? {} : { onNotice };
  const blocks = await openSegmentStore(stores.blocks, { verifyOnRead: true, ...notice });
  try {
    return { blocks, metadata: await openLmdbMetadata(stores.metadata) };
  } catch (error) {
    await blocks.close();
    throw error;
  }
}

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
  readonly keys: Keystore;
  readonly lock = new SharedLock();
  readonly log = new NodeLog();
  readonly offline: boolean;
  readonly #resolveName: ResolveName | undefined;
  readonly #closing: readonly (() => Promise<void>)[];
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
    this.pins = new Pins(this.blocks, metadata);
    const sharded = () => repo.config.value("Experimental.ShardingEnabled");
    this.files = new Namespace({ blocks: this.blocks, metadata, lock: this.lock, sharded, log: this.log });
    const { pins, lock } = this;
    this.direct = this.filestore ? { blocks: new Blocks(blocks), pins, lock, sync: () => this.sync() } : this;
    this.keys = new Keystore(join(repo.path, "keystore"), repo.identity.peerId);
    this.offline = options.offline ?? false;
    this.#resolveName = options.resolveName;
    this.#closing = closing;
  }

  get online(): boolean {
    return this.blocks.source !== undefined;
  }

  async resolve(path: string, options: ReadOptions = {}): Promise<Resolved> {
    const parsed = parsePath(path);
    return resolvePath(parsed.namespace === "ipns" ? await this.#named(parsed, options) : parsed, this.reader(options));
  }

  async #named(path: ContentPath, options: ReadOptions): Promise<ContentPath> {
    if (this.#resolveName === undefined) throw failure("OFFLINE");
    return this.#resolveName(path, options);
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
    const release = await this.lock.exclude(signal);
    try {
      yield* collectGarbage(this.blocks, this.pins, { signal, partial: await this.files.roots() });
    } finally {
      release();
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
