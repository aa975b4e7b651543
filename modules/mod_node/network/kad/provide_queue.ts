/**
 * What is to be provided in the background: roots, which survive a restart, and after them single blocks, which are kept
 * in memory as in the reference. Provider records are by multihash: so is the queue. Hosts of a shared store have one queue of roots, of
 * which each provides its share, under its own name; blocks are provided by the host that stored them.
 */
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
  /** Where several hosts have the metadata. */
  readonly shares?: Pick<WorkShares, "division"> | undefined;
  /** Milliseconds between looks at what other hosts have added. */
  readonly lookEveryMs?: number | undefined;
}

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

const keyOf = ({ multihash }: CID): string => Buffer.from(multihash.bytes).toString("latin1");

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
    await this.#looking;
    this.#rootCalm.stop();
    this.#blockCalm.stop();
    await this.#store.close();
  }

  /** The length of the queue; 0 while the routing tables are empty. */
  get size(): number {
    return this.#deps.ready() ? this.#roots.size + this.#blocks.size : 0;
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

  #workersForBlocks(): number {
    if (this.#blockCalm.isCalm) return Math.max(1, this.#deps.workers() - ROOT_WORKERS);
    return this.#blockCalm.disturbedFor() < MAX_WAIT_MS ? 0 : 1;
  }

  /** Never rejects. A root that fails is not tried again, unless the routing tables are empty by then. */
  async #work(key: string, cid: CID): Promise<void> {
    await this.#provide(key, cid);
    this.#busy.delete(key);
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    this.#roots.delete(key);
    this.#store.set(cid.toString(), undefined);
    if (this.#deps.shares !== undefined) this.#doneMeanwhile.add(key);
    this.#goOn();
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
    const { provide, log } = this.#deps;
    const { signal } = this.#stop;
    this.#busy.add(key);
    try {
      await provide(cid, signal);
    } catch (error) {
      if (!signal.aborted) log.write("provider.simple", "warn", `${cid} was not provided: ${(error as Error).message}`);
    }
  }

  #goOn(): void {
    if (this.#roots.size + this.#blocks.size === 0) this.#dropped = 0;
    this.run();
  }
}
