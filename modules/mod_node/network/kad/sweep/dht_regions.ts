/** The regions of one DHT (the public one, or that of the local network), and their target size. */
import type { MetadataStore } from "../../../storage/metadata/store.ts";
import type { Announcing, SweepNetwork } from "./announce.ts";
import { estimatedLength } from "./explore.ts";
import { type HasKadId, kadIdOf, Lookups, type Prefix, prefixesBelow } from "./keyspace.ts";
import type { SweepKey } from "./keystore.ts";
import { Regions } from "./regions.ts";
import type { SweepMetrics } from "./sweep_metrics.ts";

/** Number of peers that receive a record, as in the DHT specification. */
export const REPLICATION = 20;
/**
 * Number of leading bits of the sample keys that are looked up to estimate the number of peers: one
 * key per value of these bits.
 */
const SAMPLE_BITS = 2;

export interface DhtRegionsDeps {
  readonly metadata: MetadataStore;
  readonly metrics: SweepMetrics;
  readonly resumes: boolean;
  readonly connections: () => number;
  readonly signal: AbortSignal;
}

const lookups = new Lookups();

export class DhtRegions<P extends HasKadId> {
  readonly regions: Regions;
  network: SweepNetwork<P>;
  readonly #deps: DhtRegionsDeps;
  /** Number of bits of a region's prefix; undefined until it was estimated. */
  #length: number | undefined;
  #estimating: Promise<void> | undefined;

  private constructor(network: SweepNetwork<P>, regions: Regions, deps: DhtRegionsDeps) {
    this.network = network;
    this.regions = regions;
    this.#deps = deps;
  }

  static async open<P extends HasKadId>(network: SweepNetwork<P>, deps: DhtRegionsDeps): Promise<DhtRegions<P>> {
    const regions = new Regions(deps.metadata, network.name);
    await regions.open();
    if (!deps.resumes) regions.forget();
    return new DhtRegions(network, regions, deps);
  }

  /**
   * Estimates the size of regions from the peers closest to a few keys; only once, until
   * `reconsider` is called.
   */
  estimate(): Promise<void> {
    if (this.#length !== undefined) return Promise.resolve();
    this.#estimating ??= this.#estimate().finally(() => {
      this.#estimating = undefined;
    });
    return this.#estimating;
  }

  async #estimate(): Promise<void> {
    const found = await Promise.all(
      prefixesBelow("", SAMPLE_BITS).map(async (prefix) => {
        const key = lookups.keyIn(prefix);
        return { kadId: kadIdOf(key), peers: await this.network.closestPeers(key, this.#deps.signal) };
      }),
    );
    this.#length = estimatedLength(found, REPLICATION);
    this.regions.cut(this.#length);
  }

  /** Makes the next call estimate the size again, because the number of peers may have changed. */
  reconsider(): void {
    this.#length = undefined;
  }

  announcing(): Announcing<P> {
    const { network } = this;
    const { connections, metrics, signal } = this.#deps;
    return {
      network,
      lookups,
      replication: REPLICATION,
      connections: connections(),
      metrics,
      signal,
      manyPeers: (this.#length ?? 0) > 0,
    };
  }

  /** Groups keys by the region that contains them. */
  grouped(keys: readonly SweepKey[]): Map<Prefix, SweepKey[]> {
    return this.regions.grouped(keys);
  }
}
