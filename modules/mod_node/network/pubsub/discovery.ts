/**
 * Finds subscribers of a topic: they announce in the routing system that they provide
 * `floodsub:<topic>`.
 */
import { setTimeout as delay } from "node:timers/promises";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import { sha256 } from "multiformats/hashes/sha2";
import type { Routing } from "../routing/routing.ts";
import type { Swarm } from "../swarm/swarm.ts";

export interface DiscoveryDeps {
  readonly routing: Pick<Routing, "provide" | "findProviderPeers">;
  readonly swarm: Pick<Swarm, "connect">;
  /** Returns the number of connected peers that subscribe to a topic. */
  connectedSubscribers(topic: string): number;
}

/** Milliseconds between two rounds; doubled after each round. */
const MIN_INTERVAL_MS = 1000;
const MAX_INTERVAL_MS = 5 * 60_000;
/** Milliseconds after which a topic is advertised again: provider records expire after a day. */
const ADVERTISE_EVERY_MS = 3 * 3600_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** Number of connected subscribers at which the search for more stops. */
const ENOUGH_SUBSCRIBERS = 6;

export class Discovery {
  readonly #deps: DiscoveryDeps;
  readonly #topics = new Map<string, AbortController>();

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
  }

  /** Advertises the topic and searches for subscribers until `stopTopic`. */
  start(topic: string): void {
    const stopping = new AbortController();
    this.#topics.set(topic, stopping);
    void this.#run(topic, stopping.signal).catch(() => undefined);
  }

  stopTopic(topic: string): void {
    this.#topics.get(topic)?.abort();
    this.#topics.delete(topic);
  }

  stop(): void {
    for (const topic of [...this.#topics.keys()]) this.stopTopic(topic);
  }

  /** Rejects when the topic is stopped. A failed round is followed by the next. */
  async #run(topic: string, signal: AbortSignal): Promise<void> {
    const key = await keyOf(topic);
    let advertised = Number.NEGATIVE_INFINITY;
    for (let wait = MIN_INTERVAL_MS; ; wait = Math.min(2 * wait, MAX_INTERVAL_MS)) {
      if (performance.now() - advertised > ADVERTISE_EVERY_MS && (await this.#advertise(key, signal))) {
        advertised = performance.now();
      }
      if (this.#deps.connectedSubscribers(topic) < ENOUGH_SUBSCRIBERS)
        await this.#connect(topic, key, signal).catch(() => undefined);
      await delay(wait, undefined, { signal, ref: false });
    }
  }

  async #advertise(key: CID, signal: AbortSignal): Promise<boolean> {
    try {
      for await (const _ of this.#deps.routing.provide(key, signal));
      return true;
    } catch {
      return false;
    }
  }

  async #connect(topic: string, key: CID, signal: AbortSignal): Promise<void> {
    const { routing, swarm, connectedSubscribers } = this.#deps;
    for await (const { id, addresses } of routing.findProviderPeers(key, signal)) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]);
      await swarm.connect(id, addresses, limit).catch(() => undefined);
      if (connectedSubscribers(topic) >= ENOUGH_SUBSCRIBERS) return;
    }
  }
}

/**
 * Returns the CID that subscribers of a topic provide, as in go-libp2p-discovery: the hash of
 * `floodsub:<topic>`.
 */
export const keyOf = async (topic: string): Promise<CID> =>
  CID.createV1(raw.code, await sha256.digest(Buffer.from(`floodsub:${topic}`)));
