/** Announcing again what is here: others forget within a day. */
import type { CID } from "multiformats/cid";
import type { Pins } from "../../content/pins/pins.ts";
import { CidSet } from "../../formats/cid/set.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { parseDuration } from "../../util/go/duration.ts";
import type { NodeLog } from "../../util/log.ts";

export interface ReproviderDeps {
  readonly repo: Pick<Repo, "config">;
  readonly blocks: BlockService;
  readonly pins: Pins;
  readonly metadata: MetadataStore;
  readonly log: NodeLog;
  /** Announcements that are under way at a time. */
  readonly workers: number;
  /** There is somebody to be told. */
  readonly ready: () => boolean;
  readonly provide: (cid: CID, signal: AbortSignal) => Promise<void>;
}

/** Of the last round that came to its end. Milliseconds. */
export interface LastReprovide {
  readonly provided: number;
  readonly durationMs: number;
}

const usualInterval = "12h";
/** Milliseconds from the start of the node to its first round. */
const FIRST_RUN_AFTER_MS = 60_000;
/** Longest time that a timer can be set to, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** In the metadata: when the last round began, in milliseconds since 1970. */
const lastKey = "routing/reprovided";

type Strategy = (parts: ReproviderDeps, signal: AbortSignal) => AsyncIterable<CID>;

const strategies: Readonly<Record<string, Strategy>> = {
  /** Blocks are announced by their hash: forms of one, which a store lists together, are one. */
  async *all({ blocks }) {
    let last: Uint8Array = new Uint8Array(0);
    for await (const cid of blocks.store.keys()) {
      if (Buffer.compare(cid.multihash.bytes, last) !== 0) yield cid;
      last = cid.multihash.bytes;
    }
  },
  async *pinned({ pins }, signal) {
    const told = new CidSet();
    for await (const cid of pinned(pins)) if (told.add(cid)) yield cid;
    yield* pins.indirect(told, signal);
  },
  roots: ({ pins }) => pinned(pins),
};

async function* pinned(pins: Pins): AsyncGenerator<CID, void, undefined> {
  yield* pins.list("recursive");
  yield* pins.list("direct");
}

/** A round a minute after the start, then one after each interval, counted on when the node starts anew. */
export class Reprovider {
  readonly #deps: ReproviderDeps;
  readonly #interval: number;
  readonly #strategy: Strategy;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  /** A round is due, and there was nobody to be told. */
  #due = false;
  #last: LastReprovide = { provided: 0, durationMs: 0 };

  /** @throws NodeError of an interval that is none, or of a strategy that there is not */
  constructor(parts: ReproviderDeps) {
    const { config } = parts.repo;
    const name = config.value("Reprovider.Strategy") || "all";
    const strategy = Object.hasOwn(strategies, name) ? strategies[name] : undefined;
    if (strategy === undefined) throw new NodeError(`unknown reprovider strategy '${name}'`);
    this.#deps = parts;
    this.#strategy = strategy;
    this.#interval = parseDuration(config.value("Reprovider.Interval") || usualInterval);
  }

  get last(): LastReprovide {
    return this.#last;
  }

  async start(): Promise<void> {
    if (this.#interval <= 0) return;
    const last = Number(Buffer.from((await this.#deps.metadata.get(lastKey)) ?? []).toString());
    const first = Math.min(FIRST_RUN_AFTER_MS, this.#interval);
    this.#schedule(Math.max(first, last + this.#interval - Date.now()));
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stop.abort(new NodeError("the node is closed"));
  }

  /** To be called when somebody has come. */
  runIfDue(): void {
    if (this.#due) void this.#timed();
  }

  /**
   * One round now.
   *
   * @throws NodeError `reprovider is already running`, that there is nobody to be told; what ends the signal
   */
  async run(signal?: AbortSignal): Promise<void> {
    if (this.#running) throw new NodeError("reprovider is already running");
    this.#running = true;
    const began = Date.now();
    try {
      const provided = await this.#round(
        AbortSignal.any([this.#stop.signal, ...(signal === undefined ? [] : [signal])]),
      );
      this.#last = { provided, durationMs: Date.now() - began };
      await this.#deps.metadata.transaction((writer) => writer.put(lastKey, Buffer.from(String(began))));
    } finally {
      this.#running = false;
    }
  }

  #schedule(milliseconds: number): void {
    if (this.#stop.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#timed(), Math.min(milliseconds, MAX_TIMER_MS)).unref();
  }

  async #timed(): Promise<void> {
    const { ready, log } = this.#deps;
    this.#due = false;
    if (ready()) {
      await this.run().catch((error: Error) => {
        if (!this.#stop.signal.aborted) log.write("reprovider.simple", "warn", error.message);
      });
    }
    if (ready()) this.#schedule(this.#interval);
    else this.#due = true;
  }

  /** The number of those that were announced. What cannot be is left to the next round. */
  async #round(signal: AbortSignal): Promise<number> {
    const keys = this.#strategy(this.#deps, signal)[Symbol.asyncIterator]();
    let announced = 0;
    const work = async () => {
      for (;;) {
        signal.throwIfAborted();
        if (!this.#deps.ready()) throw failure("ROUTING_TABLE_EMPTY");
        const next = await keys.next();
        if (next.done) return;
        await this.#deps.provide(next.value, signal).then(
          () => (announced += 1),
          (error: Error) => this.#deps.log.write("reprovider.simple", "info", `${next.value}: ${error.message}`),
        );
      }
    };
    try {
      await Promise.all(Array.from({ length: this.#deps.workers }, work));
    } finally {
      await keys.return?.();
    }
    return announced;
  }
}
