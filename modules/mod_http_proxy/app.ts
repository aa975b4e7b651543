/** An app that upstreams answer: its settings of now, and the choice among its upstreams. */
import { createHash } from "node:crypto";
import type { Settings } from "./settings.ts";
import { Upstream, upstreamKey } from "./upstream.ts";

/** Seconds after which to ask again, where nothing tells when an upstream comes back. */
const MIN_RETRY_AFTER = 1;

/** Why no upstream can be asked. */
export interface Unavailable {
  readonly reason: string;
  /** Seconds. */
  readonly retryAfter: number;
}

export class ProxiedApp {
  /** The virtual host that it serves; "*" for all. */
  readonly host: string;
  readonly name: string;
  readonly settings: Settings;
  readonly upstreams: readonly Upstream[];
  readonly #byKey: ReadonlyMap<string, Upstream>;
  #next = 0;

  /** Goes on with those of the former upstreams that are the same. */
  constructor(host: string, name: string, settings: Settings, former?: ProxiedApp) {
    this.host = host;
    this.name = name;
    this.settings = settings;
    this.#byKey = new Map(
      settings.addresses.map((address) => {
        const key = upstreamKey(address, settings);
        return [key, former?.same(key) ?? new Upstream(address, settings)];
      }),
    );
    this.upstreams = [...this.#byKey.values()];
    for (const upstream of former?.upstreams ?? []) {
      const same = this.find(upstream.name);
      // An upstream with other connections is as the operator wanted it before.
      if (same !== undefined) same.drained = upstream.drained;
    }
  }

  /** The upstream of that key. */
  same(key: string): Upstream | undefined {
    return this.#byKey.get(key);
  }

  find(name: string): Upstream | undefined {
    return this.upstreams.find((upstream) => upstream.name === name);
  }

  /** An upstream has failed a request: true when it gets no more for a time. The only one always gets them. */
  failed(upstream: Upstream, now: number, reason: string): boolean {
    const counts = this.upstreams.length > 1;
    return upstream.failed(now, reason, counts ? this.settings : { ...this.settings, fail_after: 0 });
  }

  /** The upstream for a request of a client, without those that have failed it. */
  choose(now: number, client: string, failed: ReadonlySet<Upstream>): Upstream | Unavailable {
    const { balance, max_connections } = this.settings;
    const well = this.upstreams.filter((upstream) => upstream.state(now) === "healthy" && !failed.has(upstream));
    if (well.length === 0) return { reason: "none is healthy", retryAfter: this.#retryAfter(now) };
    const free = max_connections === 0 ? well : well.filter(({ inFlight }) => inFlight < max_connections);
    if (free.length === 0) return { reason: "all are busy", retryAfter: MIN_RETRY_AFTER };
    if (free.length === 1 || balance === "first") return free[0] as Upstream;
    if (balance === "client_address") return nearest(free, client);
    if (balance === "round_robin") return this.#turn(free);
    const least = Math.min(...free.map(({ inFlight }) => inFlight));
    return this.#turn(free.filter(({ inFlight }) => inFlight === least));
  }

  /** One after the other, in the order of the option, whichever of them may be chosen. */
  #turn(among: readonly Upstream[]): Upstream {
    const { upstreams } = this;
    for (;;) {
      const upstream = upstreams[this.#next % upstreams.length] as Upstream;
      this.#next = (this.#next + 1) % upstreams.length;
      if (among.includes(upstream)) return upstream;
    }
  }

  #retryAfter(now: number): number {
    const { health_path, health_interval } = this.settings;
    const waits = this.upstreams.map((upstream) => upstream.wait(now)).filter((wait) => wait !== undefined);
    const known = waits.length > 0 ? Math.min(...waits) : health_path === "" ? MIN_RETRY_AFTER : health_interval;
    return Math.max(MIN_RETRY_AFTER, Math.ceil(known));
  }
}

/** Rendezvous hashing: when an upstream comes or goes, only the clients move that it has, or had. */
function nearest(upstreams: readonly Upstream[], client: string): Upstream {
  const weighed = upstreams.map((upstream) => {
    const digest = createHash("sha1").update(`${client} ${upstream.name}`).digest();
    return { upstream, weight: digest.readUInt32BE(0) };
  });
  return weighed.reduce((best, other) => (other.weight > best.weight ? other : best)).upstream;
}
