/**
 * What is to be provided in the background: roots, which survive a restart, and after them single blocks, which are kept
 * in memory as in the reference. Provider records are by multihash: so is the queue. Hosts of a shared store have one queue of roots, of
 * which each provides its share, under its own name; blocks are provided by the host that stored them.
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
import { Calm } from "./calm.ts";

export interface ProvideQueueDeps {
  readonly metadata: MetadataStore;
  readonly log: NodeLog;
  /** CIDs that are provided at a time. */
  readonly workers: () => number;
  /** A routing table has peers. */
  readonly ready: () => boolean;
  readonly provide: (cid: CID, signal: AbortSignal) => Promise<void>;
  /**
   * Where many are announced better together: announces multihashes, tells `settled` as they are done or have failed, and resolves when
   * all are. Undefined: now they are not.
   */
  readonly together?: () => ProvideTogether | undefined;
  /** Where several hosts have the metadata. */
  readonly shares?: Pick<WorkShares, "division"> | undefined;
  /** Milliseconds between looks at what other hosts have added. */
  readonly lookEveryMs?: number | undefined;
}

/** Rejects when nothing could be announced. */
export type ProvideTogether = (
  kind: "roots" | "blocks",
  multihashes: readonly Uint8Array[],
  settled: (multihashes: readonly Uint8Array[], error?: Error) => void,
) => Promise<void>;

/** Roots in the queue, and blocks. Further ones are left to the reprovider. */
const MAX_ROOTS = 16_384;
const MAX_BLOCKS = 16_384;
/** Milliseconds until a change is written. */
const WRITE_AFTER_MS = 1000;
/** Workers that never take a block, so that a root does not wait for blocks. */
const ROOT_WORKERS = 2;
/** Milliseconds that a worker rests after a block: with peers that are near, blocks would keep the event loop busy. */
const REST_MS = 50;
const LOOK_EVERY_MS = 5000;
/** Milliseconds that blocks wait at most for the stream of new ones to end. */
const MAX_WAIT_MS = 10_000;
/** Milliseconds between looks at whether there is room. */
const ROOM_AFTER_MS = 50;
/** Milliseconds after which what could not be announced together is tried again. */
const RETRY_AFTER_MS = 60_000;

const nameOf = (multihash: Uint8Array): string => Buffer.from(multihash).toString("latin1");

const keyOf = ({ multihash }: CID): string => nameOf(multihash.bytes);

const cidOf = (key: string): CID => makeCid(1, raw, Digest.decode(Buffer.from(key, "latin1")));

export class ProvideQueue {
  readonly #deps: ProvideQueueDeps;
  readonly #store: WriteBehind;
  /** Roots by multihash, and blocks that are no roots; including those that are being provided. */
  readonly #roots = new Map<string, CID>();
  readonly #blocks = new Set<string>();
  readonly #busy = new Set<string>();
  #busyBlocks = 0;
  readonly #stop = new AbortController();
  /** Adding and fetching come first. */
  readonly #rootCalm = new Calm(() => this.run());
  readonly #blockCalm = new Calm(() => this.run());
  #dropped = 0;
  /** Whose roots are whose, when that was looked at last. */
  #division: Division | undefined;
  /** Roots that were provided since a listing of the queue began, which may still have them. */
  readonly #doneMeanwhile = new Set<string>();
  /** Roots that wait for other hosts. */
  #theirs = 0;
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(deps: ProvideQueueDeps) {
    this.#deps = deps;
    this.#store = new WriteBehind(deps.metadata, "routing/queue/", { delayMs: WRITE_AFTER_MS });
  }

  /** Takes up what was left when the node closed. */
  async start(): Promise<void> {
    if (this.#deps.shares === undefined) {
      await this.#takeUp();
      return this.run();
    }
    await this.#looking;
    clearTimeout(this.#timer);
    this.#looking = this.#look();
    await this.#looking;
  }

  async #takeUp(): Promise<void> {
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
    this.#theirs = theirs;
  }

  /** Takes up what other hosts have added to the share of this one, and what they have left. Never rejects. */
  async #look(): Promise<void> {
    await this.#takeUp().catch((error: Error) => {
      this.#deps.log.write("provider.queue", "warn", `what other hosts have added is not looked at: ${error.message}`);
    });
    this.run();
    if (this.#stop.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.#look();
    }, this.#deps.lookEveryMs ?? LOOK_EVERY_MS).unref();
  }

  #isMine({ multihash }: CID): boolean {
    return this.#deps.shares === undefined || this.#division?.isMine(multihash.bytes) === true;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    await this.#looking;
    this.#rootCalm.stop();
    this.#blockCalm.stop();
    await this.#store.close();
  }

  /** The length of the queue; 0 while the routing tables are empty. */
  get size(): number {
    return this.#deps.ready() ? this.#roots.size + this.#blocks.size : 0;
  }

  /** The multihashes of what waits, without those that are being provided. */
  waiting(): readonly Uint8Array[] {
    const keys = [...this.#roots.keys(), ...this.#blocks].filter((key) => !this.#busy.has(key));
    return keys.map((key) => cidOf(key).multihash.bytes);
  }

  /** Removes what waits, and tells how many they were; what is being provided is not stopped. */
  clear(): number {
    let count = 0;
    for (const [key, cid] of [...this.#roots]) {
      if (this.#busy.has(key)) continue;
      this.#leave(key, cid);
      count += 1;
    }
    for (const key of [...this.#blocks]) if (!this.#busy.has(key) && this.#blocks.delete(key)) count += 1;
    return count;
  }

  /** As `addBlocks`, but waits for room in the queue. Without peers it is taken for a root, which waits for one. */
  async addOne(cid: CID, signal: AbortSignal): Promise<void> {
    while (this.#blocks.size >= MAX_BLOCKS && this.#deps.ready()) await delay(ROOM_AFTER_MS, undefined, { signal });
    if (this.#deps.ready()) this.addBlocks([cid]);
    else this.add([cid]);
  }

  /** Roots are provided now, or when a peer comes; those of another host's share are left to it. */
  add(cids: readonly CID[]): void {
    for (const cid of cids) {
      const key = keyOf(cid);
      // Whoever has such a CID has its block.
      if (this.#roots.has(key) || cid.multihash.code === identity.code) continue;
      const isMine = this.#isMine(cid);
      if ((isMine ? this.#roots.size : this.#theirs) >= MAX_ROOTS) {
        this.#drop();
        continue;
      }
      this.#blocks.delete(key);
      if (isMine) this.#roots.set(key, cid);
      else this.#theirs += 1;
      this.#store.set(cid.toString(), cid.bytes);
    }
    if (this.#stop.signal.aborted) return;
    this.#rootCalm.disturb();
    this.run();
  }

  /** Blocks are provided when no more of them come, or after a while; without peers they are left to the reprovider. */
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
    this.#blockCalm.disturb();
    this.run();
  }

  #drop(): void {
    if (this.#dropped === 0) {
      this.#deps.log.write("provider.queue", "warn", "the queue is full: the rest is provided by the reprovider");
    }
    this.#dropped += 1;
  }

  /** Provides what waits, if that is possible; to be called when a peer enters a routing table. */
  run(): void {
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    const together = this.#deps.together?.();
    if (together === undefined) this.#runOneByOne();
    else this.#runTogether(together);
  }

  #runOneByOne(): void {
    const workers = this.#rootCalm.isCalm ? this.#deps.workers() : 1;
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

  /** Hands on all that waits, when no more of it comes or after a while. */
  #runTogether(provide: ProvideTogether): void {
    if (isSettled(this.#rootCalm)) this.#handOn("roots", [...this.#roots.keys()], provide);
    if (isSettled(this.#blockCalm)) this.#handOn("blocks", [...this.#blocks], provide);
  }

  #handOn(kind: "roots" | "blocks", keys: readonly string[], provide: ProvideTogether): void {
    const waiting = keys.filter((key) => !this.#busy.has(key));
    if (waiting.length === 0) return;
    for (const key of waiting) this.#busy.add(key);
    const done = (multihashes: readonly Uint8Array[], error?: Error) => {
      if (error !== undefined && !this.#stop.signal.aborted) this.#warn(`${multihashes.length} ${kind} wait`, error);
      for (const multihash of multihashes) this.#doneTogether(nameOf(multihash));
      this.#goOn();
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

  /** Those of a region that failed have their turn elsewhere, unless the routing tables are empty by then. */
  #doneTogether(key: string): void {
    this.#busy.delete(key);
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    const root = this.#roots.get(key);
    if (root === undefined) this.#blocks.delete(key);
    else this.#leave(key, root);
  }

  #workersForBlocks(): number {
    if (this.#blockCalm.isCalm) return Math.max(1, this.#deps.workers() - ROOT_WORKERS);
    return this.#blockCalm.disturbedFor() < MAX_WAIT_MS ? 0 : 1;
  }

  /** Never rejects. A root that fails is not tried again, unless the routing tables are empty by then. */
  async #work(key: string, cid: CID): Promise<void> {
    await this.#provide(key, cid);
    this.#busy.delete(key);
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    this.#leave(key, cid);
    this.#goOn();
  }

  #leave(key: string, root: CID): void {
    this.#roots.delete(key);
    this.#store.set(root.toString(), undefined);
    if (this.#deps.shares !== undefined) this.#doneMeanwhile.add(key);
  }

  /** Never rejects. A block is tried once. */
  async #workBlock(key: string): Promise<void> {
    this.#busyBlocks += 1;
    await this.#provide(key, cidOf(key));
    this.#busy.delete(key);
    this.#blocks.delete(key);
    if (this.#stop.signal.aborted) return;
    setTimeout(() => {
      this.#busyBlocks -= 1;
      this.#goOn();
    }, REST_MS).unref();
  }

  /** The caller takes it out of `#busy`, in the same step as out of the queue. */
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

  #warn(text: string, { message }: Error): void {
    this.#deps.log.write("provider.simple", "warn", `${text}: ${message}`);
  }

  #goOn(): void {
    if (this.#roots.size + this.#blocks.size === 0) this.#dropped = 0;
    this.run();
  }
}

/** Whether it is calm, or has not been for long enough. */
const isSettled = (calm: Calm): boolean => calm.isCalm || calm.disturbedFor() >= MAX_WAIT_MS;
