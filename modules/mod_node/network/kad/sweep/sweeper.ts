/**
 * Announces everything again by region of the key space, spread over an interval, and new keys at once. All keys of a region
 * go to its peers together: that takes few lookups, and one connection to each peer.
 */
import type { MetadataStore } from "../../../storage/metadata/store.ts";
import type { WorkShares } from "../../../storage/shared/work_shares.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import type { NodeLog } from "../../../util/log.ts";
import { announceKeys, announceRegion, areFew, type SweepNetwork } from "./announce.ts";
import { type Clock, systemClock } from "./clock.ts";
import { Collection, type CollectionDeps } from "./collection.ts";
import { Connectivity } from "./connectivity.ts";
import { CycleTally, type SweptKeys } from "./cycle_tally.ts";
import { DhtRegions } from "./dht_regions.ts";
import { Figures } from "./figures.ts";
import type { Placed, Prefix } from "./keyspace.ts";
import { Keystore, type SweepKey, sweepKey } from "./keystore.ts";
import { MAX_DELAY_MS, RegionSchedule } from "./region_schedule.ts";
import { cycleAt } from "./regions.ts";
import type { SweepSettings } from "./settings.ts";
import { Workers } from "./workers.ts";

export interface SweeperDeps<P extends Placed> {
  /** Of all hosts of a shared store: when regions were announced. */
  readonly metadata: MetadataStore;
  /** Of this host: the keys. */
  readonly hostMetadata: MetadataStore;
  readonly log: Pick<NodeLog, "write">;
  /** Throws a NodeError where the configuration is invalid. */
  readonly settings: () => SweepSettings;
  /** The DHT that announcements go to; undefined while it has no peers. */
  readonly network: () => SweepNetwork<P> | undefined;
  readonly source: CollectionDeps["source"];
  readonly shares?: Pick<WorkShares, "division"> | undefined;
  readonly clock?: Clock | undefined;
}

export interface NewKeys {
  /** They are announced again with the others. */
  readonly stays: boolean;
  /** Told of the keys of each region, whether they were announced or not. */
  readonly settled: (multihashes: readonly Uint8Array[], error?: Error) => void;
}

/** Milliseconds from the start to the first region, and between looks at what is due. */
const FIRST_AFTER_MS = 60_000;
const LOOK_EVERY_MS = 60_000;
const MIN_LOOK_MS = 100;
/** In the metadata store: when the first cycle began, in milliseconds since 1970. */
const CYCLE_KEY = "routing/sweep/cycle";

export class Sweeper<P extends Placed> {
  readonly #deps: SweeperDeps<P>;
  #settings: SweepSettings;
  readonly clock: Clock;
  /** When it was made, in milliseconds since 1970. */
  readonly began: number;
  readonly figures: Figures;
  readonly workers: Workers;
  readonly connectivity: Connectivity;
  readonly keystore: Keystore;
  readonly schedule: RegionSchedule;
  readonly tally = new CycleTally();
  readonly #collection: Collection;
  readonly #places = new Map<string, Promise<DhtRegions<P>>>();
  readonly #stop = new AbortController();
  #cancelTimer: () => void = () => undefined;
  #isStarted = false;
  #opened: Promise<void> | undefined;
  #turning = false;
  #running = false;
  #isBehind = false;

  /** @throws NodeError for an invalid configuration */
  constructor(deps: SweeperDeps<P>) {
    this.#deps = deps;
    const { settings, hostMetadata, shares, source, clock = systemClock } = deps;
    this.#settings = settings();
    this.clock = clock;
    this.began = clock.now();
    this.figures = new Figures(() => clock.now());
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

  /** What the last whole cycle announced, or a call since. */
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

  /** Goes by the configuration as it is now. @throws NodeError for an invalid one: the former stays */
  async renew(): Promise<void> {
    this.#settings = this.#deps.settings();
    if (this.#opened === undefined) return;
    await this.#opened;
    this.schedule.cycle = { ...this.schedule.cycle, interval: this.#settings.interval };
    this.#begin();
  }

  #begin(): void {
    const { interval } = this.#settings;
    const first = Math.min(FIRST_AFTER_MS, interval);
    this.schedule.notBefore = this.clock.now() + first;
    this.#cancelTimer();
    this.#wakeAfter(first);
  }

  #open(): Promise<void> {
    this.#opened ??= this.#takeUp();
    return this.#opened;
  }

  async #takeUp(): Promise<void> {
    const { metadata } = this.#deps;
    const { interval, resumes } = this.#settings;
    const now = Buffer.from(String(this.clock.now()));
    if (!resumes) await metadata.transaction((writer) => writer.put(CYCLE_KEY, now));
    else if (!(await metadata.has(CYCLE_KEY))) await metadata.compareAndSet(CYCLE_KEY, undefined, now);
    const began = Number(Buffer.from((await metadata.get(CYCLE_KEY)) ?? now).toString());
    this.schedule.cycle = { began, interval };
    await this.keystore.open();
  }

  /** No further region by itself. */
  pause(): void {
    this.#isStarted = false;
    this.#cancelTimer();
  }

  async stop(): Promise<void> {
    this.pause();
    this.#stop.abort(new NodeError("the node is closed"));
    await this.keystore.close();
    for (const place of this.#places.values()) {
      await place.then(({ regions }) => regions.close()).catch(() => undefined);
    }
  }

  /** To be called when a peer enters a routing table. */
  runIfDue(): void {
    this.#look();
    this.#wakeAfter(0);
  }

  /** The DHT to announce to; notes whether there is one. */
  #look(): SweepNetwork<P> | undefined {
    const network = this.#deps.network();
    this.connectivity.note(network !== undefined);
    return network;
  }

  #wakeAfter(milliseconds: number): void {
    this.#cancelTimer();
    if (this.isClosed || !this.#isStarted || this.#settings.interval <= 0) return;
    const wait = Math.max(milliseconds, this.schedule.notBefore - this.clock.now());
    this.#cancelTimer = this.clock.after(wait, () => void this.#turn());
  }

  /** Begins with what is due, as far as there are places. Never rejects. */
  async #turn(): Promise<void> {
    if (this.#turning || this.isClosed) return;
    this.#turning = true;
    try {
      this.#wakeAfter(await this.#workOnDue());
    } catch (error) {
      if (!this.isClosed) this.#warn(`what is due is not known: ${(error as Error).message}`);
      this.#wakeAfter(LOOK_EVERY_MS);
    } finally {
      this.#turning = false;
    }
  }

  /** Milliseconds until the next look; the end of a region is a reason to look, too. */
  async #workOnDue(): Promise<number> {
    const network = this.#look();
    this.#tellIfBehind();
    if (network === undefined) return LOOK_EVERY_MS;
    await this.#collection.renew(cycleAt(this.schedule.cycle, this.clock.now()));
    const place = await this.#placeOf(network);
    await place.estimate();
    for (;;) {
      if (!this.workers.hasPlace("periodic")) return LOOK_EVERY_MS;
      const due = this.schedule.first(place.regions);
      if (due === undefined) break;
      void this.#periodic(place, due.prefix);
    }
    const next = this.schedule.next()?.at ?? Number.POSITIVE_INFINITY;
    return Math.min(LOOK_EVERY_MS, Math.max(MIN_LOOK_MS, next - this.clock.now()));
  }

  /** Says when announcements fall behind, and when they no longer do. */
  #tellIfBehind(): void {
    const { behindMs } = this;
    const isBehind = behindMs > MAX_DELAY_MS;
    if (isBehind === this.#isBehind) return;
    this.#isBehind = isBehind;
    if (isBehind) this.#warn(`announcements are ${Math.round(behindMs / 60_000)} minutes late: see provide/stat`);
    else this.#warn("announcements are on time again");
  }

  /** Never rejects. */
  async #periodic(place: DhtRegions<P>, prefix: Prefix): Promise<void> {
    await this.#sweep(place, prefix).catch(() => 0);
    this.#wakeAfter(0);
  }

  /** Announces the keys of a region, and notes it. Resolves with how many they were. @throws NodeError */
  async #sweep(place: DhtRegions<P>, prefix: Prefix): Promise<number> {
    const { signal } = this.#stop;
    this.schedule.begin(prefix);
    try {
      const keys = await this.workers.run("periodic", signal, () =>
        this.figures.measure("periodic", 0, () => this.#announceStored(place, prefix)),
      );
      this.schedule.end(prefix, "announced");
      return keys;
    } catch (error) {
      this.schedule.end(prefix, "failed");
      place.reconsider();
      if (!signal.aborted) this.#warn(`keys of the region "${prefix}" wait: ${(error as Error).message}`);
      throw error;
    }
  }

  async #announceStored(place: DhtRegions<P>, prefix: Prefix): Promise<number> {
    const began = this.clock.now();
    const { prefixes, keys } = await announceRegion(
      prefix,
      (within) => this.keystore.within(within),
      place.announcing(),
    );
    for (const part of prefixes) place.regions.set(part, began);
    const durationMs = this.clock.now() - began;
    this.tally.add(cycleAt(this.schedule.cycle, began), { provided: keys, regions: prefixes.length, durationMs });
    return keys;
  }

  async #placeOf(network: SweepNetwork<P>): Promise<DhtRegions<P>> {
    const opening = this.#places.get(network.name) ?? this.#openPlace(network);
    this.#places.set(network.name, opening);
    opening.catch(() => this.#places.delete(network.name));
    const place = await opening;
    place.network = network;
    this.schedule.regions = place.regions;
    return place;
  }

  #openPlace(network: SweepNetwork<P>): Promise<DhtRegions<P>> {
    const { metadata } = this.#deps;
    const { figures } = this;
    const { signal } = this.#stop;
    const connections = () => this.#settings.connections;
    return DhtRegions.open(network, { metadata, figures, resumes: this.#settings.resumes, connections, signal });
  }

  /**
   * Announces everything now.
   *
   * @throws NodeError `reprovider is already running`, and when the routing tables are empty; the reason of the signal
   */
  async run(signal: AbortSignal = this.#stop.signal): Promise<void> {
    if (this.#running) throw new NodeError("reprovider is already running");
    const network = this.#look();
    if (network === undefined) throw failure("ROUTING_TABLE_EMPTY");
    this.#running = true;
    const began = this.clock.now();
    try {
      await this.#open();
      await this.#collection.collect();
      const place = await this.#placeOf(network);
      await place.estimate();
      const swept = await this.#sweepAll(place, signal);
      this.tally.last = { ...swept, durationMs: this.clock.now() - began };
    } finally {
      this.#running = false;
    }
  }

  async #sweepAll(
    place: DhtRegions<P>,
    signal: AbortSignal,
  ): Promise<{ readonly provided: number; readonly regions: number }> {
    const done = { provided: 0, regions: 0 };
    const left = this.schedule.wanted.values();
    const work = async () => {
      for (const prefix of left) {
        signal.throwIfAborted();
        // It may have become part of a larger one, or smaller ones, since.
        const provided = await this.#sweep(place, prefix).catch(() => 0);
        done.provided += provided;
        done.regions += 1;
      }
    };
    await Promise.all(Array.from({ length: this.#settings.workers.max }, work));
    signal.throwIfAborted();
    return done;
  }

  /**
   * Announces new keys. Resolves when all were tried; where they stay, those of a region that fails are left to its turn, which
   * is brought forward.
   *
   * @throws NodeError when the routing tables are empty
   */
  async provide(multihashes: readonly Uint8Array[], { stays, settled }: NewKeys): Promise<void> {
    const network = this.#look();
    if (network === undefined) throw failure("ROUTING_TABLE_EMPTY");
    await this.#open();
    const keys = multihashes.map(sweepKey);
    if (stays) this.#collection.add(keys);
    const place = await this.#placeOf(network);
    if (!areFew(keys.length)) await place.estimate();
    await Promise.all(
      [...place.grouped(keys)].map(async ([prefix, group]) => {
        const error = await this.#burst(place, prefix, group);
        const told = group.map(({ multihash }) => multihash);
        if (!this.isClosed) settled(told, error);
      }),
    );
  }

  /** Resolves with the error, if there is one. */
  async #burst(place: DhtRegions<P>, prefix: Prefix, keys: readonly SweepKey[]): Promise<Error | undefined> {
    const announcing = place.announcing();
    const size = this.#settings.batchSize;
    async function* batches() {
      for (let at = 0; at < keys.length; at += size) yield keys.slice(at, at + size);
    }
    const announce = async () =>
      areFew(keys.length) ? announceKeys(keys, announcing) : (await announceRegion(prefix, batches, announcing)).keys;
    try {
      await this.workers.run("burst", this.#stop.signal, () => this.figures.measure("burst", keys.length, announce));
      return undefined;
    } catch (error) {
      place.regions.bringForward(prefix);
      return error as Error;
    } finally {
      this.#wakeAfter(0);
    }
  }

  /** How many regions multihashes are in. */
  regionsOf(multihashes: readonly Uint8Array[]): number {
    return this.schedule.regions?.grouped(multihashes.map(sweepKey)).size ?? Math.min(1, multihashes.length);
  }

  /** Milliseconds by which the region that waits longest is late, while there are peers. */
  get behindMs(): number {
    return this.schedule.behindMs(this.connectivity.onlineSince);
  }

  #warn(text: string): void {
    this.#deps.log.write("reprovider.simple", "warn", text);
  }
}
