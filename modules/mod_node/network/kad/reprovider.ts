/**
 * Announces stored blocks again, because provider records expire after a day. Hosts that share a
 * store each announce their part, and take over the part of a host that has left.
 */
import type { CID } from "multiformats/cid";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import type { Division, WorkShares } from "../../storage/shared/work_shares.ts";
import { failure } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { type AnnouncingSettings, announcingSettings, type StrategyDeps } from "./strategies.ts";

export interface ReproviderDeps extends StrategyDeps {
  readonly repo: Pick<Repo, "config">;
  readonly metadata: MetadataStore;
  readonly log: NodeLog;
  /** Returns the number of CIDs to provide concurrently; read when a run begins. */
  readonly workers: () => number;
  /** Whether a routing table has peers. */
  readonly ready: () => boolean;
  readonly provide: (cid: CID, signal: AbortSignal) => Promise<void>;
  /** Divides the work if several hosts share the blocks. */
  readonly shares?: Pick<WorkShares, "division"> | undefined;
  /** Milliseconds between two checks for hosts that have left. */
  readonly checkEveryMs?: number | undefined;
}

/** Statistics of the last finished run. */
export interface LastReprovide {
  /** When it began, in milliseconds since 1970; undefined if there was none since the start. */
  readonly at?: number;
  readonly provided: number;
  readonly durationMs: number;
}

/** Milliseconds from the start of the node to its first run. */
const FIRST_RUN_AFTER_MS = 60_000;
const CHECK_EVERY_MS = 60_000;
/** Longest delay that a timer supports, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Metadata key of the time at which the last run began, in milliseconds since 1970. */
const LAST_KEY = "routing/reprovided";

/** Runs a minute after the start, then after each interval, which is counted across restarts. */
export class Reprovider {
  readonly #deps: ReproviderDeps;
  #settings: AnnouncingSettings;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** Timer of the checks for hosts that have left. */
  #checkTimer: NodeJS.Timeout | undefined;
  /** The division of keys among hosts when this host's part was last provided. */
  #covered: Division | undefined;
  #running = false;
  #isStarted = false;
  /** Whether a run is due that could not start because the routing tables were empty. */
  #due = false;
  #last: LastReprovide = { provided: 0, durationMs: 0 };

  /** @throws NodeError for an invalid interval or an unknown strategy */
  constructor(deps: ReproviderDeps) {
    this.#deps = deps;
    this.#settings = announcingSettings(deps.repo.config);
  }

  get last(): LastReprovide {
    return this.#last;
  }

  async start(): Promise<void> {
    this.#isStarted = true;
    this.#scheduleCheck();
    const { interval } = this.#settings;
    if (interval <= 0) return;
    const last = Number(Buffer.from((await this.#deps.metadata.get(LAST_KEY)) ?? []).toString());
    const first = Math.min(FIRST_RUN_AFTER_MS, interval);
    this.#schedule(Math.max(first, last + interval - Date.now()));
  }

  /**
   * Applies the current configuration; a run in progress continues unchanged.
   *
   * @throws NodeError for an invalid interval or an unknown strategy; the previous settings then
   * stay in effect
   */
  async renew(): Promise<void> {
    this.#settings = announcingSettings(this.#deps.repo.config);
    clearTimeout(this.#timer);
    this.#due = false;
    if (this.#isStarted) await this.start();
  }

  /** Stops scheduled runs. */
  pause(): void {
    this.#isStarted = false;
    this.#due = false;
    clearTimeout(this.#timer);
    clearTimeout(this.#checkTimer);
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#checkTimer);
    this.#stop.abort(failure("STORE_CLOSED"));
  }

  /** Must be called when a peer enters a routing table. */
  runIfDue(): void {
    if (this.#due) void this.#runScheduled();
  }

  /**
   * Runs now; with a shared store, for the part of this host.
   *
   * @throws NodeError `reprovider is already running`, and if the routing tables are empty; the
   * reason of the signal
   */
  async run(signal?: AbortSignal): Promise<void> {
    if (this.#running) throw failure("REPROVIDER_BUSY");
    this.#running = true;
    const began = Date.now();
    try {
      const division = await this.#deps.shares?.division();
      const isMine = (cid: CID) => division?.isMine(cid.multihash.bytes) !== false;
      const either = AbortSignal.any([this.#stop.signal, ...(signal === undefined ? [] : [signal])]);
      const provided = await this.#provideAll(isMine, either);
      this.#covered = division;
      this.#last = { at: began, provided, durationMs: Date.now() - began };
      await this.#deps.metadata.transaction((writer) => writer.put(LAST_KEY, Buffer.from(String(began))));
    } finally {
      this.#running = false;
    }
  }

  #schedule(milliseconds: number): void {
    if (this.#stop.signal.aborted || !this.#isStarted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#runScheduled(), Math.min(milliseconds, MAX_TIMER_MS)).unref();
  }

  async #runScheduled(): Promise<void> {
    const { ready, log } = this.#deps;
    this.#due = false;
    if (ready()) {
      await this.run().catch((error: Error) => {
        if (!this.#stop.signal.aborted) log.write("reprovider.simple", "warn", error.message);
      });
    }
    const { interval } = this.#settings;
    if (interval <= 0 || !this.#isStarted) return;
    if (ready()) this.#schedule(interval);
    else this.#due = true;
  }

  #scheduleCheck(): void {
    const { shares, checkEveryMs = CHECK_EVERY_MS } = this.#deps;
    if (shares === undefined || this.#stop.signal.aborted || !this.#isStarted) return;
    clearTimeout(this.#checkTimer);
    this.#checkTimer = setTimeout(() => void this.#takeOverKeys(shares), checkEveryMs).unref();
  }

  /** Provides the keys that this host has taken over from hosts that left. Never rejects. */
  async #takeOverKeys(shares: NonNullable<ReproviderDeps["shares"]>): Promise<void> {
    const { ready, log } = this.#deps;
    try {
      const now = await shares.division();
      const before = (this.#covered ??= now);
      const isGone = before.members.some((member) => !now.members.includes(member));
      if (isGone && ready() && !this.#running) {
        this.#running = true;
        const isNew = ({ multihash: { bytes } }: CID) => now.isMine(bytes) && !before.isMine(bytes);
        await this.#provideAll(isNew, this.#stop.signal).finally(() => {
          this.#running = false;
        });
        this.#covered = now;
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) log.write("reprovider.simple", "warn", (error as Error).message);
    }
    this.#scheduleCheck();
  }

  /** Resolves to the number of provided CIDs. The next run tries failed ones again. */
  async #provideAll(isWanted: (cid: CID) => boolean, signal: AbortSignal): Promise<number> {
    const keys = this.#settings.strategy(this.#deps, signal)[Symbol.asyncIterator]();
    let provided = 0;
    const work = async () => {
      for (;;) {
        signal.throwIfAborted();
        if (!this.#deps.ready()) throw failure("ROUTING_TABLE_EMPTY");
        const next = await keys.next();
        if (next.done) return;
        if (!isWanted(next.value)) continue;
        await this.#deps.provide(next.value, signal).then(
          () => (provided += 1),
          (error: Error) => this.#deps.log.write("reprovider.simple", "info", `${next.value}: ${error.message}`),
        );
      }
    };
    try {
      await Promise.all(Array.from({ length: this.#deps.workers() }, work));
    } finally {
      await keys.return?.();
    }
    return provided;
  }
}
