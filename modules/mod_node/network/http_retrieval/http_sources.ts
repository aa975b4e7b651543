/** Gateways as sources of blocks: which there are, and which may be used (`HTTPRetrieval` of the config). */
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
  /** As they are now; asked again by `renew`. */
  readonly settings: () => RetrievalSettings;
  /** Whether `Swarm.AddrFilters` has an IP address. */
  readonly isFiltered?: (ip: string) => boolean;
  /** Instead of requests over the network. */
  readonly client?: (endpoint: Endpoint, options: ClientOptions) => BlockClient;
}

/** Sources at a time, those that are tried at a time, and addresses of one provider that are tried. */
const MAX_SOURCES = 64;
const MAX_PROBES = 32;
const MAX_ADDRESSES = 10;
/** Addresses that are remembered as not to be used, and for how long one that did not answer is. */
const MAX_BANNED = 1024;
const BAN_OF_SILENT_MS = 60_000;
const BAN_OF_OTHERS_MS = 5 * 60_000;

const noCounts = (): RetrievalCounts => {
  return { block: 0, present: 0, absent: 0, later: 0, failed: 0, fault: 0, withdrawn: 0, bytes: 0 };
};

export class HttpSources implements OtherSources {
  readonly #deps: HttpSourcesDeps;
  /** By name of the endpoint; the one unused for longest is first. */
  readonly #sources = new Map<string, HttpSource>();
  readonly #probes = new Map<string, Promise<HttpSource | undefined>>();
  /** Until when an address is not used: milliseconds of `performance.now`. */
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

  /** Sources that are in use. */
  get size(): number {
    return this.#sources.size;
  }

  /** Goes by the settings as they are now: sources are found anew. */
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

  /** The first of the provider's addresses that answers: the others are likely to be the same gateway. */
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
    // Of more that are named at once those have their turn that the next search finds.
    if (underWay !== undefined || this.#probes.size >= MAX_PROBES) return underWay;
    const probing = this.#probe(endpoint).finally(() => this.#probes.delete(name));
    this.#probes.set(name, probing);
    return probing;
  }

  /**
   * Nobody makes this node connect to its own network, unless the operator has named the host. Of a host that is only said
   * to be at an address, `host` is the address.
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
      this.#log("debug", `${name} is no source of blocks: ${reason}`);
      this.#ban(name, outcome.kind === "absent" ? BAN_OF_OTHERS_MS : BAN_OF_SILENT_MS);
      return undefined;
    }
    const { receiver } = this.#deps;
    const gone = (source: HttpSource, reason: string, banMs: number) => {
      this.#log(banMs > BAN_OF_OTHERS_MS ? "warn" : "debug", `${name} is asked no more: ${reason}`);
      this.#ban(name, banMs);
      if (this.#sources.get(name) === source) this.#sources.delete(name);
      source.close();
    };
    const deps = { name, client, receiver, counts: this.counts, workers: this.#workers, gone };
    const source = new HttpSource(deps);
    this.#sources.set(name, source);
    return source;
  }

  /** False when all sources are busy. */
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
