/** CIDs that are to be provided in the background; they survive a restart. */
import { CID } from "multiformats/cid";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { WriteBehind } from "../../storage/metadata/write_behind.ts";
import type { NodeLog } from "../../util/log.ts";

export interface ProvideQueueDeps {
  readonly metadata: MetadataStore;
  readonly log: NodeLog;
  /** CIDs that are provided at a time. */
  readonly workers: number;
  /** A routing table has peers. */
  readonly ready: () => boolean;
  readonly provide: (cid: CID, signal: AbortSignal) => Promise<void>;
}

/** CIDs in the queue. Further ones are left to the reprovider. */
const MAX_QUEUED = 16_384;
/** Milliseconds until a change is written. */
const WRITE_AFTER_MS = 1000;
/** Milliseconds without a new CID until all workers run: adding files comes first. */
const CALM_AFTER_MS = 300;

export class ProvideQueue {
  readonly #deps: ProvideQueueDeps;
  readonly #store: WriteBehind;
  /** By text, including those that are being provided. */
  readonly #waiting = new Map<string, CID>();
  readonly #busy = new Set<string>();
  readonly #stop = new AbortController();
  #dropped = 0;
  #calm: NodeJS.Timeout | undefined;

  constructor(deps: ProvideQueueDeps) {
    this.#deps = deps;
    this.#store = new WriteBehind(deps.metadata, "routing/queue/", { delayMs: WRITE_AFTER_MS });
  }

  /** Takes up what was left when the node closed. */
  async start(): Promise<void> {
    for await (const [name, bytes] of this.#store.range("")) this.#waiting.set(name, CID.decode(bytes));
    this.run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#calm);
    await this.#store.close();
  }

  /** The length of the queue; 0 while the routing tables are empty. */
  get size(): number {
    return this.#deps.ready() ? this.#waiting.size : 0;
  }

  add(cids: readonly CID[]): void {
    for (const cid of cids) {
      const name = cid.toString();
      if (this.#waiting.has(name)) continue;
      if (this.#waiting.size >= MAX_QUEUED) {
        this.#drop();
        continue;
      }
      this.#waiting.set(name, cid);
      this.#store.set(name, cid.bytes);
    }
    if (this.#stop.signal.aborted) return;
    clearTimeout(this.#calm);
    this.#calm = setTimeout(() => this.#onCalm(), CALM_AFTER_MS).unref();
    this.run();
  }

  #onCalm(): void {
    this.#calm = undefined;
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
    const workers = this.#calm === undefined ? this.#deps.workers : 1;
    for (const [name, cid] of this.#waiting) {
      if (this.#busy.size >= workers) return;
      if (!this.#busy.has(name)) void this.#work(name, cid);
    }
  }

  /** Never rejects. A CID that fails is not tried again, unless the routing tables are empty by then. */
  async #work(name: string, cid: CID): Promise<void> {
    const { provide, log, ready } = this.#deps;
    const { signal } = this.#stop;
    this.#busy.add(name);
    try {
      await provide(cid, signal);
    } catch (error) {
      if (!signal.aborted) log.write("provider.simple", "warn", `${cid} was not provided: ${(error as Error).message}`);
    }
    this.#busy.delete(name);
    if (signal.aborted || !ready()) return;
    this.#waiting.delete(name);
    this.#store.set(name, undefined);
    if (this.#waiting.size === 0) this.#dropped = 0;
    this.run();
  }
}
