/**
 * Announces everything regularly by region of the key space, spread over an interval, and new keys
 * at once. All keys of a region go to its peers together, which takes few lookups, and one
 * connection to each peer.
 */
import type { MetadataStore } from "../../../storage/metadata/store.ts";
import type { WorkShares } from "../../../storage/shared/work_shares.ts";
import { failure } from "../../../util/errors.ts";
import type { NodeLog } from "../../../util/log.ts";
import { announceKeys, announceRegion, areFew, type SweepNetwork } from "./announce.ts";
import { type Clock, systemClock } from "./clock.ts";
import { Collection, type CollectionDeps } from "./collection.ts";
import { Connectivity } from "./connectivity.ts";
import { CycleTally, type SweptKeys } from "./cycle_tally.ts";
import { DhtRegions } from "./dht_regions.ts";
import type { HasKadId, Prefix } from "./keyspace.ts";
import { Keystore, type SweepKey, sweepKey } from "./keystore.ts";
import { MAX_DELAY_MS, RegionSchedule } from "./region_schedule.ts";
import { cycleAt } from "./regions.ts";
import type { SweepSettings } from "./settings.ts";
import { SweepMetrics } from "./sweep_metrics.ts";
import { Workers } from "./workers.ts";

export interface SweeperDeps<P extends HasKadId> {
  /** Metadata of all hosts of a shared store, with the times of announcements. */
  readonly metadata: MetadataStore;
  /** Metadata of this host, with the keys. */
  readonly hostMetadata: MetadataStore;
  readonly log: Pick<NodeLog, "write">;
  /** Returns the settings. Throws a NodeError if the configuration is invalid. */
  readonly settings: () => SweepSettings;
  /** Returns the DHT for announcements; undefined while it has no peers. */
  readonly network: () => SweepNetwork<P> | undefined;
  readonly source: CollectionDeps["source"];
  readonly shares?: Pick<WorkShares, "division"> | undefined;
  readonly clock?: Clock | undefined;
}

export interface NewKeys {
  /** Whether the keys are added to the regular announcements. */
  readonly stays: boolean;
  /** Called with the keys of each region, whether or not they were announced. */
  readonly settled: (multihashes: readonly Uint8Array[], error?: Error) => void;
}

/**
 * Milliseconds from the start to the first region, and the bounds of the time between two checks
 * for due regions.
 */
const FIRST_REGION_AFTER_MS = 60_000;
const CHECK_EVERY_MS = 60_000;
const MIN_CHECK_MS = 100;
/** Metadata key of the time at which the first cycle began, in milliseconds since 1970. */
const CYCLE_KEY = "routing/sweep/cycle";

export class Sweeper<P extends HasKadId> {
  readonly #deps: SweeperDeps<P>;
  #settings: SweepSettings;
  readonly clock: Clock;
  /** When the sweeper was created, in milliseconds since 1970. */
  readonly began: number;
  readonly metrics: SweepMetrics;
  readonly workers: Workers;
  readonly connectivity: Connectivity;
  readonly keystore: Keystore;
  readonly schedule: RegionSchedule;
  readonly tally = new CycleTally();
  readonly #collection: Collection;
  readonly #regionsByDht = new Map<string, Promise<DhtRegions<P>>>();
  readonly #stop = new AbortController();
  #cancelTimer: () => void = () => undefined;
  #isStarted = false;
  #opened: Promise<void> | undefined;
  #isAnnouncing = false;
  #running = false;
  #isBehind = false;

  /** @throws NodeError for an invalid configuration */
  constructor(deps: SweeperDeps<P>) {
    this.#deps = deps;
    const { settings, hostMetadata, shares, source, clock = systemClock } = deps;
    this.#settings = settings();
    this.clock = clock;
    this.began = clock.now();
    this.metrics = new SweepMetrics(() => clock.now());
    this.workers = new Workers(() => this.#settings.workers);
    this.connectivity = new Connectivity(clock, () => this.#settings.offlineAfter);
    const keystore = new Keystore(hostMetadata, () => this.#settings.batchSize);
    this.keystore = keystore;
    this.schedule = new RegionSchedule(clock, (prefix) => keystore.has(prefix));
    this.#collection = new Collection({
      keystore,
      clock,
      source,
      shares,
      signal: this.#stop.signal,
      warn: (text) => this.#warn(text),
    });
  }

  get settings(): SweepSettings {
    return this.#settings;
  }

  /** Totals of the last complete cycle, or of a later call. */
  get last(): SweptKeys {
    return this.tally.last;
  }

  get isClosed(): boolean {
    return this.#stop.signal.aborted;
  }

  async start(): Promise<void> {
    if (this.isClosed) return;
    this.#isStarted = true;
    await this.#open();
    this.#begin();
  }

  /**
   * Applies the current configuration. @throws NodeError for an invalid one; the previous settings
   * then stay in effect
   */
  async renew(): Promise<void> {
    this.#settings = this.#deps.settings();
    if (this.#opened === undefined) return;
    await this.#opened;
    this.schedule.cycle = { ...this.schedule.cycle, interval: this.#settings.interval };
    this.#begin();
  }

  #begin(): void {
    const { interval } = this.#settings;
    const first = Math.min(FIRST_REGION_AFTER_MS, interval);
    this.schedule.notBefore = this.clock.now() + first;
    this.#cancelTimer();
    this.#wakeAfter(first);
  }

  #open(): Promise<void> {
    this.#opened ??= this.#loadState();
    return this.#opened;
  }

  async #loadState(): Promise<void> {
    const { metadata } = this.#deps;
    const { interval, resumes } = this.#settings;
    const now = Buffer.from(String(this.clock.now()));
    if (!resumes) await metadata.transaction((writer) => writer.put(CYCLE_KEY, now));
    else if (!(await metadata.has(CYCLE_KEY))) await metadata.compareAndSet(CYCLE_KEY, undefined, now);
    const began = Number(Buffer.from((await metadata.get(CYCLE_KEY)) ?? now).toString());
    this.schedule.cycle = { began, interval };
    await this.keystore.open();
  }

  /** Stops scheduled announcements. */
  pause(): void {
    this.#isStarted = false;
    this.#cancelTimer();
  }

  async stop(): Promise<void> {
    this.pause();
    this.#stop.abort(failure("STORE_CLOSED"));
    await this.keystore.close();
    for (const dhtRegions of this.#regionsByDht.values()) {
      await dhtRegions.then(({ regions }) => regions.close()).catch(() => undefined);
    }
  }

  /** Must be called when a peer enters a routing table. */
  runIfDue(): void {
    this.#currentNetwork();
    this.#wakeAfter(0);
  }

  /** Returns the DHT to announce to, and records whether there is one. */
  #currentNetwork(): SweepNetwork<P> | undefined {
    const network = this.#deps.network();
    this.connectivity.record(network !== undefined);
    return network;
  }

  #wakeAfter(milliseconds: number): void {
    this.#cancelTimer();
    if (this.isClosed || !this.#isStarted || this.#settings.interval <= 0) return;
    const wait = Math.max(milliseconds, this.schedule.notBefore - this.clock.now());
    this.#cancelTimer = this.clock.after(wait, () => void this.#announceDue());
  }

  /** Starts announcing the due regions, as far as workers are available. Never rejects. */
  async #announceDue(): Promise<void> {
    if (this.#isAnnouncing || this.isClosed) return;
    this.#isAnnouncing = true;
    try {
      this.#wakeAfter(await this.#startDueRegions());
    } catch (error) {
      if (!this.isClosed) this.#warn(`cannot determine the due regions: ${(error as Error).message}`);
      this.#wakeAfter(CHECK_EVERY_MS);
    } finally {
      this.#isAnnouncing = false;
    }
  }

  /** Returns the milliseconds until the next check; the end of a region also causes one. */
  async #startDueRegions(): Promise<number> {
    const network = this.#currentNetwork();
    this.#logIfBehind();
    if (network === undefined) return CHECK_EVERY_MS;
    await this.#collection.renew(cycleAt(this.schedule.cycle, this.clock.now()));
    const dhtRegions = await this.#regionsOfDht(network);
    await dhtRegions.estimate();
    for (;;) {
      if (!this.workers.hasFreeWorker("periodic")) return CHECK_EVERY_MS;
      const due = this.schedule.first(dhtRegions.regions);
      if (due === undefined) break;
      void this.#periodic(dhtRegions, due.prefix);
    }
    const next = this.schedule.next()?.at ?? Number.POSITIVE_INFINITY;
    return Math.min(CHECK_EVERY_MS, Math.max(MIN_CHECK_MS, next - this.clock.now()));
  }

  /** Logs when announcements fall behind, and when they have caught up. */
  #logIfBehind(): void {
    const { behindMs } = this;
    const isBehind = behindMs > MAX_DELAY_MS;
    if (isBehind === this.#isBehind) return;
    this.#isBehind = isBehind;
    if (isBehind) this.#warn(`announcements are ${Math.round(behindMs / 60_000)} minutes late: see provide/stat`);
    else this.#warn("announcements are on time again");
  }

  /** Announces a scheduled region, then looks for the next one that is due. Never rejects. */
  async #periodic(dhtRegions: DhtRegions<P>, prefix: Prefix): Promise<void> {
    await this.#sweep(dhtRegions, prefix).catch(() => 0);
    this.#wakeAfter(0);
  }

  /**
   * Announces the keys of a region, and records it. Resolves to the number of keys. @throws
   * NodeError
   */
  async #sweep(dhtRegions: DhtRegions<P>, prefix: Prefix): Promise<number> {
    const { signal } = this.#stop;
    this.schedule.begin(prefix);
    try {
      const keys = await this.workers.run("periodic", signal, () =>
        this.metrics.measure("periodic", 0, () => this.#announceStored(dhtRegions, prefix)),
      );
      this.schedule.end(prefix, "announced");
      return keys;
    } catch (error) {
      this.schedule.end(prefix, "failed");
      dhtRegions.reconsider();
      if (!signal.aborted)
        this.#warn(
          `cannot announce the keys of region "${prefix}", which will be tried again: ${(error as Error).message}`,
        );
      throw error;
    }
  }

  async #announceStored(dhtRegions: DhtRegions<P>, prefix: Prefix): Promise<number> {
    const began = this.clock.now();
    const { prefixes, keys } = await announceRegion(
      prefix,
      (within) => this.keystore.within(within),
      dhtRegions.announcing(),
    );
    for (const part of prefixes) dhtRegions.regions.set(part, began);
    const durationMs = this.clock.now() - began;
    this.tally.add(cycleAt(this.schedule.cycle, began), { provided: keys, regions: prefixes.length, durationMs });
    return keys;
  }

  async #regionsOfDht(network: SweepNetwork<P>): Promise<DhtRegions<P>> {
    const opening = this.#regionsByDht.get(network.name) ?? this.#openRegions(network);
    this.#regionsByDht.set(network.name, opening);
    opening.catch(() => this.#regionsByDht.delete(network.name));
    const dhtRegions = await opening;
    dhtRegions.network = network;
    this.schedule.regions = dhtRegions.regions;
    return dhtRegions;
  }

  #openRegions(network: SweepNetwork<P>): Promise<DhtRegions<P>> {
    const { metadata } = this.#deps;
    const { metrics } = this;
    const { signal } = this.#stop;
    const connections = () => this.#settings.connections;
    return DhtRegions.open(network, { metadata, metrics, resumes: this.#settings.resumes, connections, signal });
  }

  /**
   * Announces everything now.
   *
   * @throws NodeError `reprovider is already running`, and if the routing tables are empty; the
   * reason of the signal
   */
  async run(signal: AbortSignal = this.#stop.signal): Promise<void> {
    if (this.#running) throw failure("REPROVIDER_BUSY");
    const network = this.#currentNetwork();
    if (network === undefined) throw failure("ROUTING_TABLE_EMPTY");
    this.#running = true;
    const began = this.clock.now();
    try {
      await this.#open();
      await this.#collection.collect();
      const dhtRegions = await this.#regionsOfDht(network);
      await dhtRegions.estimate();
      const swept = await this.#sweepAll(dhtRegions, signal);
      this.tally.last = { ...swept, durationMs: this.clock.now() - began };
    } finally {
      this.#running = false;
    }
  }

  async #sweepAll(
    dhtRegions: DhtRegions<P>,
    signal: AbortSignal,
  ): Promise<{ readonly provided: number; readonly regions: number }> {
    const done = { provided: 0, regions: 0 };
    const left = this.schedule.wanted.values();
    const work = async () => {
      for (const prefix of left) {
        signal.throwIfAborted();
        // The region may have been merged or divided meanwhile.
        const provided = await this.#sweep(dhtRegions, prefix).catch(() => 0);
        done.provided += provided;
        done.regions += 1;
      }
    };
    await Promise.all(Array.from({ length: this.#settings.workers.max }, work));
    signal.throwIfAborted();
    return done;
  }

  /**
   * Announces new keys. Resolves when all were tried. If they stay, keys of a region that fails are
   * announced at its next scheduled time, which is moved to now.
   *
   * @throws NodeError if the routing tables are empty
   */
  async provide(multihashes: readonly Uint8Array[], { stays, settled }: NewKeys): Promise<void> {
    const network = this.#currentNetwork();
    if (network === undefined) throw failure("ROUTING_TABLE_EMPTY");
    await this.#open();
    const keys = multihashes.map(sweepKey);
    if (stays) this.#collection.add(keys);
    const dhtRegions = await this.#regionsOfDht(network);
    if (!areFew(keys.length)) await dhtRegions.estimate();
    await Promise.all(
      [...dhtRegions.grouped(keys)].map(async ([prefix, group]) => {
        const error = await this.#burst(dhtRegions, prefix, group);
        const announced = group.map(({ multihash }) => multihash);
        if (!this.isClosed) settled(announced, error);
      }),
    );
  }

  /** Resolves to the error, if any. */
  async #burst(dhtRegions: DhtRegions<P>, prefix: Prefix, keys: readonly SweepKey[]): Promise<Error | undefined> {
    const announcing = dhtRegions.announcing();
    const size = this.#settings.batchSize;
    async function* batches() {
      for (let at = 0; at < keys.length; at += size) yield keys.slice(at, at + size);
    }
    const announce = async () =>
      areFew(keys.length) ? announceKeys(keys, announcing) : (await announceRegion(prefix, batches, announcing)).keys;
    try {
      await this.workers.run("burst", this.#stop.signal, () => this.metrics.measure("burst", keys.length, announce));
      return undefined;
    } catch (error) {
      dhtRegions.regions.bringForward(prefix);
      return error as Error;
    } finally {
      this.#wakeAfter(0);
    }
  }

  /** Returns the number of regions that contain these multihashes. */
  regionsOf(multihashes: readonly Uint8Array[]): number {
    return this.schedule.regions?.grouped(multihashes.map(sweepKey)).size ?? Math.min(1, multihashes.length);
  }

  /** Milliseconds by which the most overdue region is late, while there are peers. */
  get behindMs(): number {
    return this.schedule.behindMs(this.connectivity.onlineSince);
  }

  #warn(text: string): void {
    this.#deps.log.write("reprovider.simple", "warn", text);
  }
}
