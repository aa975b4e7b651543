/**
 * Announces blocks in the background: new content from a queue, and all content regularly, by
 * region or block by block.
 */
import type { Libp2p } from "libp2p";
import type { CID } from "multiformats/cid";
import { identity } from "../../formats/cid/hashes.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import type { SharedLog } from "../../storage/shared/log.ts";
import { WorkShares } from "../../storage/shared/work_shares.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import type { DhtPeer } from "../kad/announcer.ts";
import { activeDht, type DualDht } from "../kad/dual_dht.ts";
import type { RoutingEvents } from "../kad/events.ts";
import { ProvideQueue, type ProvideTogether } from "../kad/provide_queue.ts";
import { type LastReprovide, Reprovider } from "../kad/reprovider.ts";
import { type AnnouncingSettings, announcingSettings, type StrategyDeps } from "../kad/strategies.ts";
import { sweepSettings } from "../kad/sweep/settings.ts";
import { Sweeper } from "../kad/sweep/sweeper.ts";
import { announcesByDht } from "./from_config.ts";
import type { Router } from "./router.ts";

export interface ProvidingDeps extends StrategyDeps {
  readonly libp2p: Pick<Libp2p, "getPeers">;
  readonly repo: Pick<Repo, "config">;
  readonly metadata: MetadataStore;
  readonly hostMetadata: MetadataStore;
  /**
   * The log of the hosts that share the blocks and the metadata; undefined if the store belongs to
   * one host.
   */
  readonly shared?: Pick<SharedLog, "session" | "sessions"> | undefined;
  readonly log: NodeLog;
  readonly dhts: DualDht | undefined;
  /** Returns the current router. */
  readonly router: () => Router;
  readonly provide: (cid: CID, signal: AbortSignal) => RoutingEvents;
}

/** Statistics of announcements since the start. */
export interface ProvideStat {
  readonly total: number;
  readonly averageMs: number;
  readonly lastReprovide: LastReprovide;
}

const SWEEPS_TEXT =
  "manual reprovide is not available with the sweep provider; set Provide.DHT.SweepEnabled=false to use the legacy provider, or run 'ipfs provide stat --all' to monitor the sweep schedule";
/** Timeout in milliseconds for providing one CID. */
const PROVIDE_TIMEOUT_MS = 60_000;
/**
 * Number of CIDs to provide concurrently, block by block; the second with
 * `Experimental.AcceleratedDHTClient`.
 */
const WORKERS = 8;
const ACCELERATED_WORKERS = 32;

export class Providing {
  readonly #deps: ProvidingDeps;
  /** Settings of the regular announcements, from the last valid configuration. */
  #announcing: AnnouncingSettings;
  readonly #queue: ProvideQueue;
  readonly #reprovider: Reprovider;
  /** Undefined if `Provide.DHT.SweepEnabled` is false, and without a DHT. */
  readonly #sweeper: Sweeper<DhtPeer> | undefined;
  /** Divides the work among the hosts of a shared store. */
  readonly #shares: WorkShares | undefined;
  /** Only provide on command (`Experimental.StrategicProviding`). */
  #manualOnly: boolean;
  readonly #stat = { total: 0, milliseconds: 0 };

  /** @throws NodeError for an invalid configuration */
  constructor(deps: ProvidingDeps) {
    this.#deps = deps;
    const { repo, metadata, hostMetadata, shared, log, blocks, pins, filesRoot } = deps;
    const { config } = repo;
    this.#announcing = announcingSettings(config);
    this.#manualOnly = config.value("Experimental.StrategicProviding");
    this.#shares = shared && new WorkShares({ log: shared, metadata, name: "providing" });
    const parts = {
      log,
      shares: this.#shares,
      workers: () => (config.value("Experimental.AcceleratedDHTClient") ? ACCELERATED_WORKERS : WORKERS),
      ready: () => this.#canProvide() && deps.router().canProvide?.() === true,
      provide: (cid: CID, signal: AbortSignal) => this.#provideOne(cid, signal),
    };
    this.#sweeper = config.value("Provide.DHT.SweepEnabled") === false ? undefined : this.#makeSweeper();
    // Single blocks join the regular announcements if these include all blocks.
    const stays = (kind: "roots" | "blocks") => kind === "roots" || this.#announcing.name === "all";
    const together: ProvideTogether = async (kind, multihashes, settled) =>
      this.#sweeper?.provide(multihashes, { stays: stays(kind), settled });
    this.#queue = new ProvideQueue({
      ...parts,
      metadata,
      together: () => (this.#announcesByRegion ? together : undefined),
    });
    this.#reprovider = new Reprovider({ ...parts, metadata: hostMetadata, repo, blocks, pins, filesRoot });
  }

  #makeSweeper(): Sweeper<DhtPeer> | undefined {
    const { dhts, repo, metadata, hostMetadata, log } = this.#deps;
    if (dhts === undefined) return undefined;
    const { config } = repo;
    const settings = () => {
      const all = sweepSettings(config);
      for (const { announcer } of [dhts.wan, dhts.lan]) announcer.sendTimeout = all.sendTimeout;
      return all;
    };
    const network = () => {
      const dht = activeDht(dhts);
      return this.#canProvide() && dht.size > 0 ? dht.announcer : undefined;
    };
    const source = () => {
      const { name, strategy } = this.#announcing;
      return { name, keys: (signal: AbortSignal) => multihashesOf(strategy(this.#deps, signal)) };
    };
    return new Sweeper({ metadata, hostMetadata, log, settings, network, source, shares: this.#shares });
  }

  /** Whether announcements are made by region, given the current routers. */
  get #announcesByRegion(): boolean {
    return this.#sweeper !== undefined && announcesByDht(this.#deps.repo.config);
  }

  /** The part that makes regular announcements. */
  get #regular(): Reprovider | Sweeper<DhtPeer> {
    return this.#announcesByRegion && this.#sweeper !== undefined ? this.#sweeper : this.#reprovider;
  }

  /** The part that announces by region; undefined while announcements are made block by block. */
  get sweeper(): Sweeper<DhtPeer> | undefined {
    return this.#announcesByRegion ? this.#sweeper : undefined;
  }

  #canProvide(): boolean {
    return !this.#manualOnly && this.#deps.router().provide !== undefined;
  }

  async start(): Promise<void> {
    if (!this.#canProvide()) return;
    const { dhts, router } = this.#deps;
    for (const table of Object.values(dhts ?? {})) table.onFirstPeer = () => this.#onFirstPeer();
    if (router().canProvide?.() === true) this.#shares?.join();
    await this.#queue.start();
    await this.#regular.start();
  }

  /** Applies the current value of `Experimental.StrategicProviding`. */
  async renew(): Promise<void> {
    const before = this.#manualOnly;
    this.#manualOnly = this.#deps.repo.config.value("Experimental.StrategicProviding");
    if (this.#deps.router().provide === undefined || before === this.#manualOnly) return;
    if (this.#manualOnly) await this.#pause();
    else await this.start();
  }

  async #pause(): Promise<void> {
    this.#reprovider.pause();
    this.#sweeper?.pause();
    await this.#shares?.leave();
  }

  /** Applies the current routers. */
  async renewRouter(before: Router): Promise<void> {
    if (this.#manualOnly) return;
    const provides = this.#canProvide();
    if (provides !== (before.provide !== undefined)) return provides ? this.start() : this.#pause();
    const other = this.#regular === this.#reprovider ? this.#sweeper : this.#reprovider;
    other?.pause();
    if (provides) await this.#regular.start();
  }

  /**
   * Applies the current values of `Reprovider` and `Provide.DHT`. @throws NodeError for an invalid
   * value
   */
  async renewReprovider(): Promise<void> {
    // Both parts validate the same values, so that an invalid value changes neither.
    const announcing = announcingSettings(this.#deps.repo.config);
    await this.#sweeper?.renew();
    this.#announcing = announcing;
    await this.#reprovider.renew();
  }

  async stop(): Promise<void> {
    this.#reprovider.stop();
    await this.#sweeper?.stop();
    await this.#queue.stop();
    await this.#shares?.leave();
  }

  #onFirstPeer(): void {
    if (this.#manualOnly) return;
    this.#shares?.join();
    this.#queue.run();
    this.#regular.runIfDue();
  }

  /** Provides roots in the background, now or when a peer enters a routing table. */
  announce(cids: readonly CID[]): void {
    if (this.#canProvide()) this.#queue.add(cids);
  }

  /**
   * Provides single new blocks in the background, after the roots; without a peer in a routing
   * table they are left for later. If `Provide.Strategy` is set, this only happens for `all`, as in
   * Kubo; with the older key it always happens, as in go-ipfs.
   */
  announceBlocks(cids: readonly CID[]): void {
    const isSaid = Boolean(this.#deps.repo.config.value("Provide.Strategy"));
    if (this.#canProvide() && (!isSaid || this.#announcing.name === "all")) this.#queue.addBlocks(cids);
  }

  /** Number of CIDs that wait to be provided; 0 while the routing tables are empty. */
  get queued(): number {
    return this.#queue.size;
  }

  get stat(): ProvideStat {
    const { total, milliseconds } = this.#stat;
    const { keys = 0, milliseconds: swept = 0 } = this.#sweeper?.metrics ?? {};
    const all = total + keys;
    return {
      total: all,
      averageMs: all === 0 ? 0 : (milliseconds + swept) / all,
      lastReprovide: this.#regular.last,
    };
  }

  /** Returns the multihashes that are queued to be announced for the first time. */
  waiting(): readonly Uint8Array[] {
    return this.#queue.waiting();
  }

  /** Milliseconds in which everything is announced again; zero or negative for never. */
  get interval(): number {
    return this.#announcing.interval;
  }

  /** Whether only `provide` announces anything. */
  get isOff(): boolean {
    return this.#manualOnly;
  }

  /** Clears the queue of first announcements and returns the number of removed entries. */
  clear(): number {
    return this.#queue.clear();
  }

  /**
   * Announces a block in the background, in addition to automatic announcements. Waits for room in
   * the queue.
   */
  provideOnce(cid: CID, signal: AbortSignal): Promise<void> {
    return this.#queue.addOne(cid, signal);
  }

  /**
   * Announces stored blocks again if that is done on command, as in Kubo.
   *
   * @throws NodeError if it is not, and as `reprovide` does
   */
  async reprovideOnCommand(signal: AbortSignal): Promise<void> {
    if (this.#manualOnly) throw failure("PROVIDE_OFF");
    if (this.#announcing.interval <= 0)
      throw new NodeError("PROVIDE_OFF", "invalid configuration: Provide.DHT.Interval is set to '0'");
    if (this.#announcesByRegion) throw failure("FEATURE_OFF", { reason: SWEEPS_TEXT });
    await this.reprovide(signal);
  }

  /**
   * Announces stored blocks again, as `Reprovider.Strategy` defines; does nothing with
   * `Experimental.StrategicProviding`.
   *
   * @throws NodeError if no peer is connected, the tables are empty, or the reprovider is running
   */
  async reprovide(signal: AbortSignal): Promise<void> {
    if (this.#manualOnly) return;
    if (this.#deps.libp2p.getPeers().length === 0)
      throw failure("NO_CONNECTED_PEERS", { reason: "cannot reprovide, no connected peers" });
    await this.#regular.run(signal);
  }

  async #provideOne(cid: CID, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const either = AbortSignal.any([signal, AbortSignal.timeout(PROVIDE_TIMEOUT_MS)]);
    for await (const _ of this.#deps.provide(cid, either));
    this.#stat.total += 1;
    this.#stat.milliseconds += performance.now() - began;
  }
}

async function* multihashesOf(cids: AsyncIterable<CID>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const { multihash } of cids) if (multihash.code !== identity.code) yield multihash.bytes;
}
