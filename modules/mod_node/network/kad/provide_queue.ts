/**
 * Queues what the node announces in the background: first roots, which survive a restart, then
 * single blocks, which are only in memory as in go-ipfs. Entries are multihashes, because provider
 * records are. Hosts of a shared store share one queue of roots, of which each announces its part
 * under its own name; blocks are announced by the host that stored them.
 */
import { setTimeout as delay } from "node:timers/promises";
import { CID } from "multiformats/cid";
import * as Digest from "multiformats/hashes/digest";
import { raw } from "../../formats/cid/codecs.ts";
import { identity } from "../../formats/cid/hashes.ts";
import { makeCid } from "../../formats/cid/make.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { WriteBehind } from "../../storage/metadata/write_behind.ts";
import type { Division, WorkShares } from "../../storage/shared/work_shares.ts";
import type { NodeLog } from "../../util/log.ts";
import { Debounce } from "./debounce.ts";

export interface ProvideQueueDeps {
  readonly metadata: MetadataStore;
  readonly log: NodeLog;
  /** Returns the number of CIDs to provide concurrently. */
  readonly workers: () => number;
  /** Whether a routing table has peers. */
  readonly ready: () => boolean;
  readonly provide: (cid: CID, signal: AbortSignal) => Promise<void>;
  /**
   * Returns a function that announces many multihashes together, if that is currently better than
   * announcing them one by one. It calls `settled` for multihashes that succeeded or failed, and
   * resolves when all are done.
   */
  readonly together?: () => ProvideTogether | undefined;
  /** Divides the work if several hosts share the metadata. */
  readonly shares?: Pick<WorkShares, "division"> | undefined;
  /** Milliseconds between two checks for roots that other hosts have added. */
  readonly checkEveryMs?: number | undefined;
}

/** Announces multihashes together; rejects if nothing could be announced. */
export type ProvideTogether = (
  kind: "roots" | "blocks",
  multihashes: readonly Uint8Array[],
  settled: (multihashes: readonly Uint8Array[], error?: Error) => void,
) => Promise<void>;

/** Maximum number of roots and of blocks in the queue. The reprovider announces further ones. */
const MAX_ROOTS = 16_384;
const MAX_BLOCKS = 16_384;
/** Milliseconds until a change is written. */
const WRITE_AFTER_MS = 1000;
/** Number of workers that never take a block, so that roots do not wait for blocks. */
const ROOT_WORKERS = 2;
/**
 * Milliseconds that a worker pauses after a block: with nearby peers, blocks would otherwise keep
 * the event loop busy.
 */
const REST_MS = 50;
const CHECK_EVERY_MS = 5000;
/** Maximum number of milliseconds that blocks wait for the end of a series of additions. */
const MAX_WAIT_MS = 10_000;
/** Milliseconds between two checks for room in the queue. */
const ROOM_AFTER_MS = 50;
/** Milliseconds after which a failed joint announcement is repeated. */
const RETRY_AFTER_MS = 60_000;

const nameOf = (multihash: Uint8Array): string => Buffer.from(multihash).toString("latin1");

const keyOf = ({ multihash }: CID): string => nameOf(multihash.bytes);

const cidOf = (key: string): CID => makeCid(1, raw, Digest.decode(Buffer.from(key, "latin1")));

export class ProvideQueue {
  readonly #deps: ProvideQueueDeps;
  readonly #store: WriteBehind;
  /** Roots by multihash, and blocks that are not roots; both include entries in progress. */
  readonly #roots = new Map<string, CID>();
  readonly #blocks = new Set<string>();
  readonly #busy = new Set<string>();
  #busyBlocks = 0;
  readonly #stop = new AbortController();
  /** Runs start when no content was added or fetched for a while, because that is more urgent. */
  readonly #rootSeries = new Debounce(() => this.run());
  readonly #blockSeries = new Debounce(() => this.run());
  #dropped = 0;
  /** The last known division of the roots among hosts. */
  #division: Division | undefined;
  /**
   * Roots that were provided since the current listing of the queue began, which may still contain
   * them.
   */
  readonly #doneMeanwhile = new Set<string>();
  /** Number of roots that other hosts have to provide. */
  #rootsOfOthers = 0;
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;

  constructor(deps: ProvideQueueDeps) {
    this.#deps = deps;
    this.#store = new WriteBehind(deps.metadata, "routing/queue/", { delayMs: WRITE_AFTER_MS });
  }

  /** Resumes the entries that were left when the node closed. */
  async start(): Promise<void> {
    if (this.#deps.shares === undefined) {
      await this.#loadRoots();
      return this.run();
    }
    await this.#checking;
    clearTimeout(this.#timer);
    this.#checking = this.#checkOtherHosts();
    await this.#checking;
  }

  async #loadRoots(): Promise<void> {
    const division = await this.#deps.shares?.division();
    this.#division = division;
    let theirs = 0;
    this.#doneMeanwhile.clear();
    for await (const [name, bytes] of this.#store.range("")) {
      const cid = CID.decode(bytes);
      const key = keyOf(cid);
      if (this.#doneMeanwhile.has(key)) continue;
      const other = this.#roots.get(key);
      if (division?.isMine(cid.multihash.bytes) === false) {
        theirs += 1;
        if (!this.#busy.has(key)) this.#roots.delete(key);
      } else if (other === undefined) this.#roots.set(key, cid);
      else if (other.toString() !== name) this.#store.set(name, undefined);
    }
    this.#rootsOfOthers = theirs;
  }

  /**
   * Loads the roots that other hosts have added to this host's part, or have left to it. Never
   * rejects.
   */
  async #checkOtherHosts(): Promise<void> {
    await this.#loadRoots().catch((error: Error) => {
      this.#deps.log.write(
        "provider.queue",
        "warn",
        `cannot load the roots that other hosts have added: ${error.message}`,
      );
    });
    this.run();
    if (this.#stop.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#checking = this.#checkOtherHosts();
    }, this.#deps.checkEveryMs ?? CHECK_EVERY_MS).unref();
  }

  #isMine({ multihash }: CID): boolean {
    return this.#deps.shares === undefined || this.#division?.isMine(multihash.bytes) === true;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    await this.#checking;
    this.#rootSeries.stop();
    this.#blockSeries.stop();
    await this.#store.close();
  }

  /** The length of the queue; 0 while the routing tables are empty. */
  get size(): number {
    return this.#deps.ready() ? this.#roots.size + this.#blocks.size : 0;
  }

  /** Returns the multihashes that are queued, without those in progress. */
  waiting(): readonly Uint8Array[] {
    const keys = [...this.#roots.keys(), ...this.#blocks].filter((key) => !this.#busy.has(key));
    return keys.map((key) => cidOf(key).multihash.bytes);
  }

  /** Clears the queue and returns the number of removed entries; those in progress continue. */
  clear(): number {
    let count = 0;
    for (const [key, cid] of [...this.#roots]) {
      if (this.#busy.has(key)) continue;
      this.#removeRoot(key, cid);
      count += 1;
    }
    for (const key of [...this.#blocks]) if (!this.#busy.has(key) && this.#blocks.delete(key)) count += 1;
    return count;
  }

  /**
   * Like `addBlocks`, but waits for room in the queue. Without peers the block is added as a root,
   * which waits for a peer.
   */
  async addOne(cid: CID, signal: AbortSignal): Promise<void> {
    while (this.#blocks.size >= MAX_BLOCKS && this.#deps.ready()) await delay(ROOM_AFTER_MS, undefined, { signal });
    if (this.#deps.ready()) this.addBlocks([cid]);
    else this.add([cid]);
  }

  /**
   * Adds roots, which are provided now or when a peer arrives; those in another host's part are
   * left to that host.
   */
  add(cids: readonly CID[]): void {
    for (const cid of cids) {
      const key = keyOf(cid);
      // An identity CID contains its block.
      if (this.#roots.has(key) || cid.multihash.code === identity.code) continue;
      const isMine = this.#isMine(cid);
      if ((isMine ? this.#roots.size : this.#rootsOfOthers) >= MAX_ROOTS) {
        this.#drop();
        continue;
      }
      this.#blocks.delete(key);
      if (isMine) this.#roots.set(key, cid);
      else this.#rootsOfOthers += 1;
      this.#store.set(cid.toString(), cid.bytes);
    }
    if (this.#stop.signal.aborted) return;
    if (!this.#deps.ready()) this.#logProgress(`failed, and waits for peers: ${cids.join(", ")}`);
    this.#rootSeries.trigger();
    this.run();
  }

  /**
   * Adds blocks, which are provided when the series of additions pauses, or after a while. Without
   * peers they are left to the reprovider.
   */
  addBlocks(cids: readonly CID[]): void {
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    for (const cid of cids) {
      if (this.#blocks.size >= MAX_BLOCKS) {
        this.#drop();
        break;
      }
      const key = keyOf(cid);
      if (!this.#roots.has(key)) this.#blocks.add(key);
    }
    this.#blockSeries.trigger();
    this.run();
  }

  #drop(): void {
    if (this.#dropped === 0) {
      this.#deps.log.write("provider.queue", "warn", "the queue is full: the reprovider provides the rest");
    }
    this.#dropped += 1;
  }

  /**
   * Provides queued entries, if that is possible; must be called when a peer enters a routing
   * table.
   */
  run(): void {
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    const together = this.#deps.together?.();
    if (together === undefined) this.#runOneByOne();
    else this.#runTogether(together);
  }

  #runOneByOne(): void {
    const workers = this.#rootSeries.isSettled ? this.#deps.workers() : 1;
    for (const [key, cid] of this.#roots) {
      if (this.#busy.size >= workers) return;
      if (!this.#busy.has(key)) void this.#work(key, cid);
    }
    const forBlocks = this.#workersForBlocks();
    for (const key of this.#blocks) {
      if (this.#busy.size >= workers || this.#busyBlocks >= forBlocks) return;
      if (!this.#busy.has(key)) void this.#workBlock(key);
    }
  }

  /** Hands on all queued entries when the series of additions pauses, or after a while. */
  #runTogether(provide: ProvideTogether): void {
    if (isDone(this.#rootSeries)) this.#handOn("roots", [...this.#roots.keys()], provide);
    if (isDone(this.#blockSeries)) this.#handOn("blocks", [...this.#blocks], provide);
  }

  #handOn(kind: "roots" | "blocks", keys: readonly string[], provide: ProvideTogether): void {
    const waiting = keys.filter((key) => !this.#busy.has(key));
    if (waiting.length === 0) return;
    for (const key of waiting) this.#busy.add(key);
    const done = (multihashes: readonly Uint8Array[], error?: Error) => {
      if (error !== undefined && !this.#stop.signal.aborted) this.#warn(`${multihashes.length} ${kind} wait`, error);
      for (const multihash of multihashes) this.#doneTogether(nameOf(multihash));
      this.#continue();
    };
    const multihashes = waiting.map((key) => cidOf(key).multihash.bytes);
    provide(kind, multihashes, done).catch((error: Error) => {
      for (const key of waiting) this.#busy.delete(key);
      if (this.#stop.signal.aborted) return;
      this.#warn(`${waiting.length} ${kind} were not announced`, error);
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.run(), RETRY_AFTER_MS).unref();
    });
  }

  /**
   * Removes a finished entry. Entries of a failed region are announced again by the sweep, unless
   * the routing tables have become empty.
   */
  #doneTogether(key: string): void {
    this.#busy.delete(key);
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    const root = this.#roots.get(key);
    if (root === undefined) this.#blocks.delete(key);
    else this.#removeRoot(key, root);
    if (root !== undefined) this.#logProgress(`completed: ${root}`);
  }

  #workersForBlocks(): number {
    if (this.#blockSeries.isSettled) return Math.max(1, this.#deps.workers() - ROOT_WORKERS);
    return this.#blockSeries.pendingMs() < MAX_WAIT_MS ? 0 : 1;
  }

  /**
   * Never rejects. A root that fails is not tried again, unless the routing tables have become
   * empty.
   */
  async #work(key: string, cid: CID): Promise<void> {
    await this.#provide(key, cid);
    this.#busy.delete(key);
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    this.#removeRoot(key, cid);
    this.#logProgress(`completed: ${cid}`);
    this.#continue();
  }

  #removeRoot(key: string, root: CID): void {
    this.#roots.delete(key);
    this.#store.set(root.toString(), undefined);
    if (this.#deps.shares !== undefined) this.#doneMeanwhile.add(key);
  }

  /** Never rejects. Each block is tried once. */
  async #workBlock(key: string): Promise<void> {
    this.#busyBlocks += 1;
    await this.#provide(key, cidOf(key));
    this.#busy.delete(key);
    this.#blocks.delete(key);
    if (this.#stop.signal.aborted) return;
    setTimeout(() => {
      this.#busyBlocks -= 1;
      this.#continue();
    }, REST_MS).unref();
  }

  /**
   * Marks an entry as busy and provides it. The caller unmarks it when it removes the entry from
   * the queue.
   */
  async #provide(key: string, cid: CID): Promise<void> {
    const { provide } = this.#deps;
    const { signal } = this.#stop;
    this.#busy.add(key);
    try {
      await provide(cid, signal);
    } catch (error) {
      if (!signal.aborted) this.#warn(`${cid} was not provided`, error as Error);
    }
  }

  /** Logs the progress of a root, with the text of Kubo. */
  #logProgress(what: string): void {
    this.#deps.log.write("core/commands", "debug", `fast-provide-root: async provide ${what}`);
  }

  #warn(text: string, { message }: Error): void {
    this.#deps.log.write("provider.simple", "warn", `${text}: ${message}`);
  }

  #continue(): void {
    if (this.#roots.size + this.#blocks.size === 0) this.#dropped = 0;
    this.run();
  }
}

/** Whether the series has ended, or has lasted long enough. */
const isDone = (series: Debounce): boolean => series.isSettled || series.pendingMs() >= MAX_WAIT_MS;
