/** What is to be announced to the routing system: kept over restarts, done in the background. */
import { CID } from "multiformats/cid";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { WriteBehind } from "../../storage/metadata/write_behind.ts";
import type { NodeLog } from "../../util/log.ts";

export interface ProvideQueueDeps {
  readonly metadata: MetadataStore;
  readonly log: NodeLog;
  /** Announcements that are under way at a time. */
  readonly workers: number;
  /** There is somebody to be told. */
  readonly ready: () => boolean;
  readonly provide: (cid: CID, signal: AbortSignal) => Promise<void>;
}

/** CIDs that wait; what comes above it waits for the next round over all that is here. */
const MAX_QUEUED = 16_384;
/** Milliseconds. */
const writeAfter = 1000;
/** Milliseconds without anything new until announcing takes its full share: those who add come first. */
const calmAfter = 300;

export class ProvideQueue {
  readonly #deps: ProvideQueueDeps;
  readonly #store: WriteBehind;
  /** By text, those under way among them. */
  readonly #waiting = new Map<string, CID>();
  readonly #busy = new Set<string>();
  readonly #stop = new AbortController();
  #leftOut = 0;
  #calm: NodeJS.Timeout | undefined;

  constructor(parts: ProvideQueueDeps) {
    this.#deps = parts;
    this.#store = new WriteBehind(parts.metadata, "routing/queue/", { delayMs: writeAfter });
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

  /** Those that wait while there is somebody to be told. */
  get size(): number {
    return this.#deps.ready() ? this.#waiting.size : 0;
  }

  add(cids: readonly CID[]): void {
    for (const cid of cids) {
      const name = cid.toString();
      if (this.#waiting.has(name)) continue;
      if (this.#waiting.size >= MAX_QUEUED) {
        this.#leaveOut();
        continue;
      }
      this.#waiting.set(name, cid);
      this.#store.set(name, cid.bytes);
    }
    if (this.#stop.signal.aborted) return;
    clearTimeout(this.#calm);
    this.#calm = setTimeout(() => this.#calmed(), calmAfter).unref();
    this.run();
  }

  #calmed(): void {
    this.#calm = undefined;
    this.run();
  }

  #leaveOut(): void {
    if (this.#leftOut === 0) {
      this.#deps.log.write(
        "provider.queue",
        "warn",
        "there is more to announce than can wait: the next round takes it",
      );
    }
    this.#leftOut += 1;
  }

  /** To be called when somebody has come. */
  run(): void {
    if (this.#stop.signal.aborted || !this.#deps.ready()) return;
    const workers = this.#calm === undefined ? this.#deps.workers : 1;
    for (const [name, cid] of this.#waiting) {
      if (this.#busy.size >= workers) return;
      if (!this.#busy.has(name)) void this.#work(name, cid);
    }
  }

  /** Never rejects. What cannot be announced is not tried again, unless everybody has gone. */
  async #work(name: string, cid: CID): Promise<void> {
    const { provide, log, ready } = this.#deps;
    const { signal } = this.#stop;
    this.#busy.add(name);
    try {
      await provide(cid, signal);
    } catch (error) {
      if (!signal.aborted)
        log.write("provider.simple", "warn", `${cid} was not announced: ${(error as Error).message}`);
    }
    this.#busy.delete(name);
    if (signal.aborted || !ready()) return;
    this.#waiting.delete(name);
    this.#store.set(name, undefined);
    if (this.#waiting.size === 0) this.#leftOut = 0;
    this.run();
  }
}
