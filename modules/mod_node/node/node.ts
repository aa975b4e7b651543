/** The node of one repo: connects storage, content and network. */
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CID } from "multiformats/cid";
import type { BackupSnapshot } from "../../../core/types.ts";
import { type SizeSharding, shardingAtStart } from "../content/adder/import_config.ts";
import { type NodeReadOptions, nodeReader, type ReadBlock } from "../content/dag/reader.ts";
import { Denylists, denylistFolders } from "../content/denylists/denylists.ts";
import { configuredForms } from "../content/mfs/configured_forms.ts";
import { Namespace } from "../content/mfs/namespace.ts";
import { flush } from "../content/mfs/operations.ts";
import { namespacePath } from "../content/mfs/path.ts";
import { collectGarbage, type NotRemoved, type Removed } from "../content/pins/gc.ts";
import { Pins } from "../content/pins/pins.ts";
import { collectingHost } from "../content/pins/shared_gc.ts";
import { type ContentPath, parsePath } from "../content/resolver/path.ts";
import { type Resolved, resolvePath } from "../content/resolver/resolve.ts";
import type { Stores } from "../migration/open_stores/engines.ts";
import { snapshotRepo } from "../migration/snapshot_repo.ts";
import { Mounts } from "../mount/mounts.ts";
import type { MountDeps } from "../mount/start_mounts.ts";
import { Names } from "../network/ipns/names.ts";
import type { RecordOptions } from "../network/ipns/resolver.ts";
import type { Network } from "../network/network.ts";
import { MfsPolicy } from "../network/pinning_services/mfs_policy.ts";
import { RemotePins } from "../network/pinning_services/remote_pins.ts";
import { knownServices } from "../network/pinning_services/services.ts";
import { BlockService } from "../storage/blockstore/block_service.ts";
import { Filestore, filestoreSettings } from "../storage/filestore/filestore.ts";
import { KeyFiles } from "../storage/keystore/key_files.ts";
import { Keystore } from "../storage/keystore/keystore.ts";
import type { MetadataStore } from "../storage/metadata/store.ts";
import type { Repo } from "../storage/repo/repo.ts";
import type { CollectingHost } from "../storage/shared/gc/collections.ts";
import type { SharedLog } from "../storage/shared/log.ts";
import type { SharedStoreMetrics } from "../storage/shared/metrics.ts";
import { WorkShares } from "../storage/shared/work_shares.ts";
import { agentVersion, withSuffix } from "../util/agent_version.ts";
import { Queue } from "../util/async/queue.ts";
import { SharedLock } from "../util/async/shared_lock.ts";
import { NodeCounts } from "../util/counts.ts";
import { isDebugging } from "../util/debugging.ts";
import { type FailureKind, failure, failures, NodeError } from "../util/errors.ts";
import { NodeLog } from "../util/log.ts";
import { parseSize } from "../util/size.ts";
import type { LowLevelNode, NodeOptions, NodeStat, OfflineCode } from "./low_level_node.ts";

/** In percent; used if the configuration has 0. */
const DEFAULT_WATERMARK_PERCENT = 90;

/** Runs all steps in order, even if some fail. @throws the first failure, after the last step */
export async function closeAll(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failed: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failed.push(error));
  if (failed.length > 0) throw failed[0];
}

const agentOf = ({ agent = agentVersion }: NodeOptions, { config }: Repo): string =>
  withSuffix(agent, config.value("Version.AgentSuffix"));

export class LocalNode implements LowLevelNode {
  readonly repo: Repo;
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  readonly hostMetadata: MetadataStore;
  readonly shared: SharedLog | undefined;
  readonly pins: Pins;
  readonly files: Namespace;
  readonly sizeSharding: SizeSharding;
  readonly filesChunker: string;
  readonly filestore: Filestore | undefined;
  readonly wholeBlocks: BlockService;
  readonly denylists: Denylists;
  readonly scratch: string;
  readonly keys: Keystore;
  readonly lock = new SharedLock();
  readonly log = new NodeLog();
  readonly counts = new NodeCounts();
  readonly agent: string;
  readonly offline: boolean;
  readonly names: Names;
  readonly remotePins: RemotePins;
  readonly mfsPolicy: MfsPolicy;
  readonly mounts: Mounts;
  readonly #pubsub: boolean;
  readonly #namesOverPubsub: boolean;
  readonly #onNotice: NodeOptions["onNotice"];
  readonly #copyMetadata: Stores["copyMetadata"];
  /** Status and metrics of shared stores. */
  readonly #status: Pick<Stores, "problem" | "metrics">;
  readonly #collections: Stores["collections"];
  readonly #closing: readonly (() => Promise<void>)[];
  #network: Promise<Network> | undefined;
  #closed: Promise<void> | undefined;

  constructor(
    repo: Repo,
    {
      blocks,
      metadata,
      hostMetadata = metadata,
      shared,
      onMetadata,
      collections,
      copyMetadata,
      keys,
      ...results
    }: Stores,
    options: NodeOptions,
    closing: readonly (() => Promise<void>)[],
  ) {
    this.repo = repo;
    this.sizeSharding = shardingAtStart(repo.config);
    this.filesChunker = repo.config.value("Import.UnixFSChunker") ?? "";
    this.filestore = filestoreOf(repo, { blocks, metadata, shared });
    this.blocks = new BlockService(this.filestore ?? blocks);
    this.wholeBlocks = this.filestore ? new BlockService(blocks, this.blocks.damaged) : this.blocks;
    if (this.filestore) {
      this.wholeBlocks.onStored = (stored) => this.blocks.onStored?.(stored);
      this.wholeBlocks.onNew = (cids) => this.blocks.onNew?.(cids);
    }
    this.#followHashOnRead();
    this.blocks.damaged.onFound = options.onNotice ?? ((sentence) => this.log.write("blockstore", "warn", sentence));
    this.metadata = metadata;
    this.hostMetadata = hostMetadata;
    this.shared = shared;
    this.denylists = this.#denylistsOf(options);
    this.pins = new Pins(this.blocks, metadata, this.lock);
    const { lock, log } = this;
    const forms = configuredForms(repo.config);
    this.files = new Namespace({ blocks: this.blocks, metadata, lock, ...forms, log, shared: shared !== undefined });
    for (const blocks of [this.blocks, this.wholeBlocks]) blocks.pending = this.files;
    this.scratch = scratchOf(repo);
    this.keys = new Keystore(keys ?? new KeyFiles(join(repo.path, "keystore")), repo.identity.peerId);
    this.offline = options.offline ?? false;
    this.agent = agentOf(options, repo);
    this.names = new Names({
      repo,
      metadata,
      keys: this.keys,
      shares: keys && shared && new WorkShares({ log: shared, metadata, name: "names" }),
      log: this.log,
      debug: options.debug ?? isDebugging(process.env),
      localValue: (key) => this.#localValue(key),
      opened: () => this.#opened(),
      requireServed: (name) => this.denylists.requirePath("ipns", name),
    });
    onMetadata?.((key) => this.names.published(key));
    this.remotePins = new RemotePins({ config: repo.config, log, swarm: async () => (await this.#opened())?.swarm });
    this.mfsPolicy = new MfsPolicy({
      pins: this.remotePins,
      services: () => knownServices(repo.config),
      root: (signal) => flush(this.files, namespacePath("/"), { signal }),
      defaultName: `policy/${repo.identity.peerId}/mfs`,
      log: this.log,
    });
    const mountDeps: MountDeps = {
      repo,
      ...treesAt(this),
      lock: this.lock,
      sharded: forms.sharded,
      blocks: this.blocks,
      log: this.log,
      names: this.names,
      reader: (reading) => this.reader(reading),
      keys: () => this.keys.list(),
      blockAt: async (path, signal) => (await this.resolve(path, { signal })).cid,
    };
    this.mounts = new Mounts(mountDeps);
    this.#collections = collections;
    collections?.serve(this.#collectingHost());
    const { defaults = {} } = options;
    const { pubsub, namesOverPubsub } = repo.config.switches;
    this.#namesOverPubsub = options.namesOverPubsub ?? namesOverPubsub ?? defaults.namesOverPubsub ?? false;
    this.#pubsub = options.pubsub ?? (namesOverPubsub || pubsub) ?? defaults.pubsub ?? false;
    this.#onNotice = options.onNotice;
    this.#closing = closing;
    this.#copyMetadata = copyMetadata;
    this.#status = results;
  }

  #collectingHost(): CollectingHost {
    const { pins, lock } = this;
    const rootsInProgress = async () => [...(await this.files.roots()), ...(await this.mounts.openRoots())];
    return collectingHost({ pins, lock, roots: () => this.#roots(), rootsInProgress });
  }

  #followHashOnRead(): void {
    const { config } = this.repo;
    const checkReads = () => {
      this.blocks.hashOnRead = config.value("Datastore.HashOnRead");
    };
    checkReads();
    config.follow(["Datastore.HashOnRead"], checkReads);
  }

  #denylistsOf({ onNotice }: NodeOptions): Denylists {
    return new Denylists({
      folders: denylistFolders(this.repo.path),
      warn: onNotice ?? ((sentence) => this.log.write("core", "warn", sentence)),
      changed: (lists) => {
        this.blocks.denials = lists.isEmpty ? undefined : lists;
      },
    });
  }

  get problem(): string | undefined {
    return this.#status.problem?.();
  }

  get storeMetrics(): SharedStoreMetrics | undefined {
    return this.#status.metrics?.();
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
      // Imported lazily, so that a node that stays offline does not load the network code.
      const { openNetwork } = await import("../network/network.ts");
      const { repo, blocks, metadata, hostMetadata, shared, pins, names, agent, log } = this;
      const pubsub = this.#pubsub;
      const namesOverPubsub = this.#namesOverPubsub;
      const onNotice = this.#onNotice;
      const stores = { blocks, metadata, hostMetadata, shared };
      const filesRoot = (signal: AbortSignal) => flush(this.files, namespacePath("/"), { signal });
      const network = await openNetwork({
        repo,
        agent,
        ...stores,
        pins,
        filesRoot,
        names,
        pubsub,
        namesOverPubsub,
        log,
        onNotice,
      });
      this.blocks.source = network.bitswap;
      this.mfsPolicy.start();
      return network;
    } catch (error) {
      this.#network = undefined;
      throw error;
    }
  }

  async network(kind: FailureKind = "failure", code: OfflineCode = "OFFLINE_COMMAND"): Promise<Network> {
    if (this.#network === undefined) throw new NodeError(code, failures[code], { kind });
    return this.#network;
  }

  /**
   * Resolves to the network; to undefined if the node is offline or the network could not be
   * opened.
   */
  async #opened(): Promise<Network | undefined> {
    return this.#network?.catch(() => undefined);
  }

  announce(roots: readonly CID[]): void {
    this.#opened()
      .then((network) => network?.routing.announce(roots))
      .catch(() => undefined);
  }

  async goOffline(): Promise<void> {
    const network = await this.#opened();
    this.#network = undefined;
    await this.mfsPolicy.stop();
    this.blocks.source = undefined;
    await network?.close();
  }

  async resolve(path: string, options: NodeReadOptions & RecordOptions = {}): Promise<Resolved> {
    const parsed = parsePath(path);
    const requireServed = ({ namespace, root, segments }: ContentPath) => {
      if (options.evenDenied !== true) this.denylists.requirePath(namespace, root, segments);
    };
    requireServed(parsed);
    if (parsed.namespace !== "ipns") return resolvePath(parsed, this.reader(options));
    const named = await this.#named(parsed, options);
    requireServed(named);
    return resolvePath(named, this.reader(options));
  }

  async #named({ root, segments }: ContentPath, options: RecordOptions): Promise<ContentPath> {
    const { signal, offline, count, timeout } = options;
    const path = await this.names.resolve(root, { signal, offline, count, timeout });
    return parsePath([path, ...segments].join("/"));
  }

  /** Resolves to a record that the routing system has stored locally on behalf of other peers. */
  async #localValue(key: Uint8Array): Promise<Uint8Array | undefined> {
    const network = await this.#opened();
    if (network !== undefined) return network.routing.localValue(key);
    const { RecordStore } = await import("../network/kad/record_store.ts");
    return new RecordStore({ metadata: this.hostMetadata, self: this.repo.identity.peerId }).value(key);
  }

  reader(options: NodeReadOptions = {}): ReadBlock {
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
    const percent = this.repo.config.value("Datastore.StorageGCWatermark") || DEFAULT_WATERMARK_PERCENT;
    return storageMax !== undefined && bytes > (storageMax / 100) * percent;
  }

  async *collect(signal?: AbortSignal): AsyncGenerator<Removed | NotRemoved, void, undefined> {
    const results = new Queue<Removed | NotRemoved>();
    const leaving = new AbortController();
    const over = this.#collect(results, AbortSignal.any([leaving.signal, ...(signal ? [signal] : [])]));
    try {
      yield* results;
    } finally {
      leaving.abort();
      await over;
    }
  }

  /**
   * Collects garbage independently of the consumer, so that a slow reader does not prolong the
   * exclusive lock. Never rejects.
   */
  async #collect(results: Queue<Removed | NotRemoved>, signal: AbortSignal): Promise<void> {
    const { collections } = this.counts;
    const began = performance.now();
    try {
      const report = (result: Removed | NotRemoved) => {
        if ("removed" in result) collections.removed += 1;
        results.push(result);
      };
      await (this.#collections === undefined
        ? this.#collectHere(report, signal)
        : this.#collectTogether(report, signal));
      await this.blocks.store.compact(signal);
      results.end();
    } catch (reason) {
      collections.failed += 1;
      results.fail(reason);
    } finally {
      collections.runs += 1;
      collections.time += performance.now() - began;
    }
  }

  async #collectHere(report: (result: Removed | NotRemoved) => void, signal: AbortSignal): Promise<void> {
    const release = await this.lock.acquireExclusive(signal);
    try {
      // A copy of the metadata must not contain roots whose blocks are about to be removed.
      await this.#copyMetadata?.();
      await collectGarbage(this.blocks, this.pins, report, { signal, partial: await this.#roots() });
    } finally {
      release();
    }
  }

  async #collectTogether(report: (result: Removed | NotRemoved) => void, signal: AbortSignal): Promise<void> {
    await this.#collections?.collect({ signal, onRemoved: (removed) => report({ removed }) });
  }

  async #roots(): Promise<CID[]> {
    return [...(await this.files.roots()), ...(await this.mounts.roots())];
  }

  hold(signal: AbortSignal): Promise<BackupSnapshot> {
    const { repo, metadata, scratch, wholeBlocks, shared } = this;
    return snapshotRepo({ repo, metadata, scratch, blocks: wholeBlocks.store, isShared: shared !== undefined }, signal);
  }

  close(): Promise<void> {
    this.#closed ??= closeAll(this.#closing);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Returns the store for the trees of mounts. If several hosts collect garbage together, the trees
 * are stored with the pins, so that all hosts see them.
 */
const treesAt = ({ repo, shared, metadata, hostMetadata }: LocalNode): Pick<MountDeps, "metadata" | "host"> =>
  shared === undefined ? { metadata: hostMetadata } : { metadata, host: repo.identity.peerId.toString() };

/** Returns undefined if the filestore is off. @throws NodeError REFERENCES_SHARED */
function filestoreOf(repo: Repo, { blocks, metadata, shared }: Stores): Filestore | undefined {
  const settings = filestoreSettings(repo);
  if (settings === undefined) return undefined;
  if (shared !== undefined) throw failure("REFERENCES_SHARED");
  return new Filestore(blocks, metadata, settings);
}

const scratchOf = ({ stores }: Repo): string => join(dirname(stores.metadata), "scratch");

/** Resolves to the total size of the files in a folder; 0 if it does not exist. */
async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
