/** Finding others who follow a topic: they say in the routing system that they provide `floodsub:<topic>`. */
import { setTimeout as pass } from "node:timers/promises";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import { sha256 } from "multiformats/hashes/sha2";
import type { Routing } from "../kad/routing.ts";
import type { Swarm } from "../swarm/swarm.ts";

export interface DiscoveryDeps {
  readonly routing: Pick<Routing, "provide" | "findProviderPeers">;
  readonly swarm: Pick<Swarm, "connect">;
  /** How many connected peers follow a topic. */
  connectedSubscribers(topic: string): number;
}

/** Milliseconds between two rounds: doubled until it is the longest. */
const interval = { shortest: 1000, longest: 5 * 60_000 };
/** Milliseconds after which one says again that one follows a topic: others forget it after a day. */
const announceEvery = 3 * 3600_000;
const connectWithin = 10_000;
/** Connected peers of a topic that are enough. */
const enough = 6;

export class Discovery {
  readonly #deps: DiscoveryDeps;
  readonly #followed = new Map<string, AbortController>();

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
  }

  /** Looks for others until the topic is left. */
  start(topic: string): void {
    const leaving = new AbortController();
    this.#followed.set(topic, leaving);
    void this.#run(topic, leaving.signal).catch(() => undefined);
  }

  stopTopic(topic: string): void {
    this.#followed.get(topic)?.abort();
    this.#followed.delete(topic);
  }

  stop(): void {
    for (const topic of [...this.#followed.keys()]) this.stopTopic(topic);
  }

  /** Rejects when the topic is left. Failures are no news: the next round comes. */
  async #run(topic: string, signal: AbortSignal): Promise<void> {
    const key = await keyOf(topic);
    let announced = Number.NEGATIVE_INFINITY;
    for (let wait = interval.shortest; ; wait = Math.min(2 * wait, interval.longest)) {
      if (performance.now() - announced > announceEvery && (await this.#advertise(key, signal))) {
        announced = performance.now();
      }
      if (this.#deps.connectedSubscribers(topic) < enough)
        await this.#connectTo(topic, key, signal).catch(() => undefined);
      await pass(wait, undefined, { signal, ref: false });
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

  async #connectTo(topic: string, key: CID, signal: AbortSignal): Promise<void> {
    const { routing, swarm, connectedSubscribers } = this.#deps;
    for await (const { id, multiaddrs } of routing.findProviderPeers(key, signal)) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(connectWithin)]);
      await swarm.connect(id, multiaddrs, limit).catch(() => undefined);
      if (connectedSubscribers(topic) >= enough) return;
    }
  }
}

/** Under which the followers of a topic are found. */
export const keyOf = async (topic: string): Promise<CID> =>
  CID.createV1(raw.code, await sha256.digest(Buffer.from(`floodsub:${topic}`)));
