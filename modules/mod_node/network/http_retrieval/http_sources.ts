/**
 * Manages gateways as sources of blocks: which ones exist, and which may be used (`HTTPRetrieval`
 * of the config).
 */
import type { NodeLog } from "../../util/log.ts";
import type { OtherSources, SourceReceiver } from "../bitswap/block_peer.ts";
import type { ProviderRecord } from "../routing/provider_record.ts";
import { type BlockClient, blockClient, type ClientOptions } from "./block_client.ts";
import { type Endpoint, endpointOf } from "./endpoint.ts";
import { HttpSource, type RetrievalCounts } from "./http_source.ts";
import type { RetrievalSettings } from "./settings.ts";

export interface HttpSourcesDeps {
  readonly receiver: SourceReceiver;
  readonly log: NodeLog;
  /** Returns the current settings; called again by `renew`. */
  readonly settings: () => RetrievalSettings;
  /** Whether `Swarm.AddrFilters` blocks an IP address. */
  readonly isFiltered?: (ip: string) => boolean;
  /** Replaces the client that sends requests over the network. */
  readonly client?: (endpoint: Endpoint, options: ClientOptions) => BlockClient;
}

/** Maximum number of sources, of concurrent probes, and of addresses to probe per provider. */
const MAX_SOURCES = 64;
const MAX_PROBES = 32;
const MAX_ADDRESSES = 10;
/**
 * Maximum number of remembered bans, and the duration of a ban for an address that did not respond
 * and for a server that is not a gateway.
 */
const MAX_BANNED = 1024;
const BAN_OF_SILENT_MS = 60_000;
const BAN_OF_OTHERS_MS = 5 * 60_000;

const noCounts = (): RetrievalCounts => {
  return { block: 0, present: 0, absent: 0, later: 0, failed: 0, fault: 0, withdrawn: 0, bytes: 0 };
};

export class HttpSources implements OtherSources {
  readonly #deps: HttpSourcesDeps;
  /** Sources by endpoint name, the least recently used first. */
  readonly #sources = new Map<string, HttpSource>();
  readonly #probes = new Map<string, Promise<HttpSource | undefined>>();
  /** End of the ban by address, in milliseconds of `performance.now`. */
  readonly #banned = new Map<string, number>();
  readonly counts = noCounts();
  #settings: RetrievalSettings;
  #workers: { max: number; active: number };
  #closed = false;

  constructor(deps: HttpSourcesDeps) {
    this.#deps = deps;
    this.#settings = deps.settings();
    this.#workers = { max: this.#settings.workers, active: 0 };
  }

  get all(): Iterable<HttpSource> {
    return this.#sources.values();
  }

  /** Number of sources in use. */
  get size(): number {
    return this.#sources.size;
  }

  /** Applies the current settings; all sources are then searched for again. */
  renew(): void {
    this.#settings = this.#deps.settings();
    this.#workers = { max: this.#settings.workers, active: 0 };
    this.#banned.clear();
    this.#dropAll();
  }

  close(): void {
    this.#closed = true;
    this.#dropAll();
  }

  tick(): void {
    const now = performance.now();
    for (const source of this.#sources.values()) source.tick(now);
  }

  /**
   * Returns the first of the provider's addresses that responds: the others are probably the same
   * gateway.
   */
  async at({ addresses }: ProviderRecord): Promise<readonly HttpSource[]> {
    if (!this.#settings.enabled || this.#closed) return [];
    const endpoints = addresses.map(endpointOf).filter((endpoint) => endpoint !== undefined);
    for (const endpoint of endpoints.slice(0, MAX_ADDRESSES)) {
      const source = await this.#source(endpoint);
      if (source !== undefined) return [source];
    }
    return [];
  }

  async #source(endpoint: Endpoint): Promise<HttpSource | undefined> {
    const { name, host, ip } = endpoint;
    const known = this.#sources.get(name);
    if (known !== undefined) {
      this.#sources.delete(name);
      this.#sources.set(name, known);
      return known;
    }
    if ((this.#banned.get(name) ?? 0) > performance.now() || !this.#settings.allows(host)) return undefined;
    if (ip !== undefined && !this.#mayDial(ip, ip)) return undefined;
    const underWay = this.#probes.get(name);
    // If too many addresses are named at once, the next search probes the rest.
    if (underWay !== undefined || this.#probes.size >= MAX_PROBES) return underWay;
    const probing = this.#probe(endpoint).finally(() => this.#probes.delete(name));
    this.#probes.set(name, probing);
    return probing;
  }

  /**
   * Prevents others from making this node connect to its local network, unless the operator has
   * allowed the host. For a host name that is only claimed to be at an address, `host` is that
   * address.
   */
  #mayDial(host: string, ip: string): boolean {
    return this.#deps.isFiltered?.(ip) !== true && this.#settings.mayDial(host, ip);
  }

  async #probe(endpoint: Endpoint): Promise<HttpSource | undefined> {
    const { name, host, ip } = endpoint;
    const settings = this.#settings;
    const { maxBlockSize, workers, insecure } = settings;
    const mayDial = (found: string) => this.#mayDial(ip ?? host, found);
    const make = this.#deps.client ?? blockClient;
    const client = make(endpoint, { maxBlockSize, workers, insecure, mayDial });
    const outcome = await client.probe();
    const isGateway = outcome.kind === "block" || outcome.kind === "present";
    if (!isGateway || settings !== this.#settings || this.#closed || !this.#makeRoom()) {
      client.close();
      if (isGateway) return undefined;
      const reason = "reason" in outcome ? outcome.reason : outcome.kind;
      this.#log("debug", `${name} is not a source of blocks: ${reason}`);
      this.#ban(name, outcome.kind === "absent" ? BAN_OF_OTHERS_MS : BAN_OF_SILENT_MS);
      return undefined;
    }
    const { receiver } = this.#deps;
    const gone = (source: HttpSource, reason: string, banMs: number) => {
      this.#log(banMs > BAN_OF_OTHERS_MS ? "warn" : "debug", `dropped ${name} as a source of blocks: ${reason}`);
      this.#ban(name, banMs);
      if (this.#sources.get(name) === source) this.#sources.delete(name);
      source.close();
    };
    const deps = { name, client, receiver, counts: this.counts, workers: this.#workers, onGone: gone };
    const source = new HttpSource(deps);
    this.#sources.set(name, source);
    return source;
  }

  /** Makes room for another source; returns false if all sources are busy. */
  #makeRoom(): boolean {
    if (this.#sources.size < MAX_SOURCES) return true;
    for (const [name, source] of this.#sources) {
      if (source.isBusy) continue;
      this.#sources.delete(name);
      source.close();
      return true;
    }
    return false;
  }

  #ban(name: string, milliseconds: number): void {
    this.#banned.delete(name);
    this.#banned.set(name, performance.now() + milliseconds);
    if (this.#banned.size > MAX_BANNED) this.#banned.delete(this.#banned.keys().next().value as string);
  }

  #dropAll(): void {
    const sources = [...this.#sources.values()];
    this.#sources.clear();
    for (const source of sources) source.close();
  }

  #log(level: "debug" | "warn", text: string): void {
    this.#deps.log.write("bitswap", level, text);
  }
}
