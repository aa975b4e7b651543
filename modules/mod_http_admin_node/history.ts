/** One hour of the node's metrics, and the current values. */
import type { NodeModule } from "modhost/node";
import type { AdminTopic } from "../../core/types.ts";
import type { NodeFiguresNow, NodeHistory, NodeSeries } from "./types.ts";

/** Seconds between two samples. */
const INTERVAL = 10;
const MAX_SAMPLES = 360;
/** Seconds between two events. */
const EVENT_INTERVAL = 1;
/** Milliseconds for which the size of the repo is cached, because measuring it is slow. */
const MAX_AGE_MS = 60_000;

const names: readonly NodeSeries[] = ["peers", "rate_in", "rate_out", "repo_size", "blocks"];

/** State that a reload passes to the next instance. */
export interface SavedHistory {
  readonly next: number;
  readonly time: Float64Array;
  readonly series: Readonly<Record<NodeSeries, Float64Array>>;
}

function columns<T>(make: (name: NodeSeries) => T): Record<NodeSeries, T> {
  return Object.fromEntries(names.map((name) => [name, make(name)])) as Record<NodeSeries, T>;
}

interface RepoFacts {
  readonly at: number;
  readonly size: number;
  readonly limit: number | undefined;
  readonly blocks: number;
}

export class History {
  readonly #node: NodeModule;
  /** Ring buffers: sample `n` is at `n % MAX_SAMPLES`. NaN stands for a missing value. */
  #rings: SavedHistory = {
    next: 0,
    time: new Float64Array(MAX_SAMPLES),
    series: columns(() => new Float64Array(MAX_SAMPLES)),
  };
  #repo: RepoFacts | undefined;
  #pendingRead: Promise<RepoFacts> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #totals: { readonly at: number; readonly in: number; readonly out: number } | undefined;

  constructor(node: NodeModule) {
    this.#node = node;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.sample().catch(() => undefined), INTERVAL * 1000).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  save(): SavedHistory {
    return this.#rings;
  }

  restore(saved: SavedHistory): void {
    this.#rings = saved;
  }

  async sample(now = Date.now()): Promise<void> {
    if (!this.#node.isOpen) return;
    const metrics = await this.now();
    const { next, time, series } = this.#rings;
    const at = next % MAX_SAMPLES;
    const last = this.#totals;
    const seconds = last === undefined ? 0 : (now - last.at) / 1000;
    const rate = (total: number, before: number) => (seconds > 0 ? Math.max(0, total - before) / seconds : Number.NaN);
    const values: Record<NodeSeries, number> = {
      peers: metrics.peers,
      rate_in: metrics.online ? rate(metrics.total_in, last?.in ?? 0) : Number.NaN,
      rate_out: metrics.online ? rate(metrics.total_out, last?.out ?? 0) : Number.NaN,
      repo_size: metrics.repo_size,
      blocks: metrics.blocks,
    };
    this.#totals = { at: now, in: metrics.total_in, out: metrics.total_out };
    time[at] = Math.round(now / 1000);
    for (const name of names) series[name][at] = values[name];
    this.#rings = { ...this.#rings, next: next + 1 };
  }

  history(): NodeHistory {
    const { next, time, series } = this.#rings;
    const first = Math.max(0, next - MAX_SAMPLES);
    const column = (ring: Float64Array) =>
      Array.from({ length: next - first }, (_, at) => ring[(first + at) % MAX_SAMPLES]);
    const shown = (value: number | undefined) =>
      value === undefined || Number.isNaN(value) ? null : Math.round(value);
    return {
      interval: INTERVAL,
      time: column(time).map((value) => value ?? 0),
      series: columns((name) => column(series[name]).map(shown)),
    };
  }

  async now(): Promise<NodeFiguresNow> {
    const { lowLevel } = this.#node;
    const repo = await this.#repoFacts();
    const network = lowLevel.online ? await lowLevel.network().catch(() => undefined) : undefined;
    const traffic = network?.swarm.bandwidth?.total();
    return {
      time: new Date().toISOString(),
      online: network !== undefined,
      peers: network?.libp2p.getPeers().length ?? 0,
      rate_in: Math.round(traffic?.RateIn ?? 0),
      rate_out: Math.round(traffic?.RateOut ?? 0),
      total_in: traffic?.TotalIn ?? 0,
      total_out: traffic?.TotalOut ?? 0,
      repo_size: repo.size,
      ...(repo.limit === undefined ? {} : { repo_limit: repo.limit }),
      blocks: repo.blocks,
      wants: network?.bitswap.wantlist().length ?? 0,
    };
  }

  /** Emits metrics as events, measured once for all listeners. */
  readonly topic: AdminTopic = (emit) => {
    let isMeasuring = false;
    const ask = async () => {
      if (isMeasuring || !this.#node.isOpen) return;
      isMeasuring = true;
      await this.now()
        .then(emit)
        .catch(() => undefined);
      isMeasuring = false;
    };
    void ask();
    const timer = setInterval(() => void ask(), EVENT_INTERVAL * 1000).unref();
    return () => clearInterval(timer);
  };

  /** Returns facts that are at most a minute old. */
  async #repoFacts(): Promise<RepoFacts> {
    const known = this.#repo;
    if (known !== undefined && performance.now() - known.at < MAX_AGE_MS) return known;
    this.#pendingRead ??= this.#node.lowLevel
      .stat()
      .then(({ bytes, storageMax, blocks }) => {
        this.#repo = { at: performance.now(), size: bytes, limit: storageMax, blocks };
        return this.#repo;
      })
      .finally(() => {
        this.#pendingRead = undefined;
      });
    return known ?? this.#pendingRead;
  }
}
