/** A proxied app: its current settings, and the choice among its upstreams. */
import { createHash } from "node:crypto";
import type { RelayFault } from "../../core/http/index.ts";
import type { Settings } from "./settings.ts";
import { connectionsBy, Upstream } from "./upstream.ts";

/** Seconds after which clients should retry if it is unknown when an upstream comes back. */
const MIN_RETRY_AFTER = 1;

/** The reason why no upstream is available. */
export interface Unavailable {
  readonly reason: string;
  /** Seconds after which clients should retry. */
  readonly retryAfter: number;
}

export class ProxiedApp {
  /** The virtual host that it serves; "*" for all. */
  readonly host: string;
  readonly name: string;
  readonly settings: Settings;
  readonly upstreams: readonly Upstream[];
  #next = 0;

  /** Keeps those of the previous upstreams whose settings for connections have not changed. */
  constructor(host: string, name: string, settings: Settings, previous?: ProxiedApp) {
    this.host = host;
    this.name = name;
    this.settings = settings;
    this.upstreams = settings.addresses.map((address) => {
      const known = previous?.find(address.name);
      return known?.connections === connectionsBy(settings) ? known : new Upstream(address, settings, known);
    });
  }

  find(name: string): Upstream | undefined {
    return this.upstreams.find((upstream) => upstream.name === name);
  }

  /** Records that an upstream has failed a request. Returns true if it gets none for a time. */
  failed(upstream: Upstream, now: number, fault: RelayFault): boolean {
    // A single upstream always gets requests.
    const isSingle = this.upstreams.length === 1;
    return upstream.failed(now, fault, isSingle ? { ...this.settings, fail_after: 0 } : this.settings);
  }

  /**
   * Returns the upstream for a client's request, except those that have already failed this
   * request.
   */
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

  /** Returns the available upstreams in rotation, in the order of the option. */
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

/** Rendezvous hashing: when an upstream is added or removed, only clients of that upstream move. */
function nearest(upstreams: readonly Upstream[], client: string): Upstream {
  const weighed = upstreams.map((upstream) => {
    const digest = createHash("sha1").update(`${client} ${upstream.name}`).digest();
    return { upstream, weight: digest.readUInt32BE(0) };
  });
  return weighed.reduce((best, other) => (other.weight > best.weight ? other : best)).upstream;
}
