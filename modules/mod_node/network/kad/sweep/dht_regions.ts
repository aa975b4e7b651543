/** The regions of one DHT (the public one, or that of the local network), and how large they are to be. */
import type { MetadataStore } from "../../../storage/metadata/store.ts";
import type { Announcing, SweepNetwork } from "./announce.ts";
import { estimatedLength } from "./explore.ts";
import type { Figures } from "./figures.ts";
import { kadIdOf, Lookups, type Placed, type Prefix, prefixesBelow } from "./keyspace.ts";
import type { SweepKey } from "./keystore.ts";
import { Regions } from "./regions.ts";

/** Peers that a record is given to, as in the specification of the DHT. */
export const REPLICATION = 20;
/** Bits of the keys that are looked up to estimate how many peers there are: one key for each value of them. */
const SAMPLE_BITS = 2;

export interface DhtRegionsDeps {
  readonly metadata: MetadataStore;
  readonly figures: Figures;
  readonly resumes: boolean;
  readonly connections: () => number;
  readonly signal: AbortSignal;
}

const lookups = new Lookups();

export class DhtRegions<P extends Placed> {
  readonly regions: Regions;
  network: SweepNetwork<P>;
  readonly #deps: DhtRegionsDeps;
  /** Bits of a region; undefined until peers were looked for. */
  #length: number | undefined;
  #estimating: Promise<void> | undefined;

  private constructor(network: SweepNetwork<P>, regions: Regions, deps: DhtRegionsDeps) {
    this.network = network;
    this.regions = regions;
    this.#deps = deps;
  }

  static async open<P extends Placed>(network: SweepNetwork<P>, deps: DhtRegionsDeps): Promise<DhtRegions<P>> {
    const regions = new Regions(deps.metadata, network.name);
    await regions.open();
    if (!deps.resumes) regions.forget();
    return new DhtRegions(network, regions, deps);
  }

  /** Estimates how large regions are to be from the peers closest to a few keys; once, until `reconsider` is called. */
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

  /** Has the size estimated again: the number of peers may have changed. */
  reconsider(): void {
    this.#length = undefined;
  }

  announcing(): Announcing<P> {
    const { network } = this;
    const { connections, figures, signal } = this.#deps;
    return {
      network,
      lookups,
      replication: REPLICATION,
      connections: connections(),
      figures,
      signal,
      manyPeers: (this.#length ?? 0) > 0,
    };
  }

  /** Keys by the region that each is in. */
  grouped(keys: readonly SweepKey[]): Map<Prefix, SweepKey[]> {
    return this.regions.grouped(keys);
  }
}
