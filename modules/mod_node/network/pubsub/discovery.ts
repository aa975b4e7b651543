/** Finding others who follow a topic: they say in the routing system that they provide `floodsub:<topic>`. */
import { setTimeout as pass } from "node:timers/promises";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import { sha256 } from "multiformats/hashes/sha2";
import type { Routing } from "../kad/routing.ts";
import type { Peers } from "../swarm/peers.ts";

export interface DiscoveryParts {
  readonly routing: Pick<Routing, "provide" | "find">;
  readonly peers: Pick<Peers, "connect">;
  /** How many connected peers follow a topic. */
  others(topic: string): number;
}

/** Milliseconds between two rounds: doubled until it is the longest. */
const interval = { shortest: 1000, longest: 5 * 60_000 };
/** Milliseconds after which one says again that one follows a topic: others forget it after a day. */
const announceEvery = 3 * 3600_000;
const connectWithin = 10_000;
/** Connected peers of a topic that are enough. */
const enough = 6;

export class Discovery {
  readonly #parts: DiscoveryParts;
  readonly #followed = new Map<string, AbortController>();

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
  }

  /** Looks for others until the topic is left. */
  follow(topic: string): void {
    const leaving = new AbortController();
    this.#followed.set(topic, leaving);
    void this.#look(topic, leaving.signal).catch(() => undefined);
  }

  leave(topic: string): void {
    this.#followed.get(topic)?.abort();
    this.#followed.delete(topic);
  }

  stop(): void {
    for (const topic of [...this.#followed.keys()]) this.leave(topic);
  }

  /** Rejects when the topic is left. Failures are no news: the next round comes. */
  async #look(topic: string, signal: AbortSignal): Promise<void> {
    const key = await keyOf(topic);
    let announced = Number.NEGATIVE_INFINITY;
    for (let wait = interval.shortest; ; wait = Math.min(2 * wait, interval.longest)) {
      if (performance.now() - announced > announceEvery && (await this.#announce(key, signal))) {
        announced = performance.now();
      }
      if (this.#parts.others(topic) < enough) await this.#meet(topic, key, signal).catch(() => undefined);
      await pass(wait, undefined, { signal, ref: false });
    }
  }

  async #announce(key: CID, signal: AbortSignal): Promise<boolean> {
    try {
      for await (const _ of this.#parts.routing.provide(key, signal));
      return true;
    } catch {
      return false;
    }
  }

  async #meet(topic: string, key: CID, signal: AbortSignal): Promise<void> {
    const { routing, peers, others } = this.#parts;
    for await (const { id, multiaddrs } of routing.find(key, signal)) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(connectWithin)]);
      await peers.connect(id, multiaddrs, limit).catch(() => undefined);
      if (others(topic) >= enough) return;
    }
  }
}

/** Under which the followers of a topic are found. */
export const keyOf = async (topic: string): Promise<CID> =>
  CID.createV1(raw.code, await sha256.digest(Buffer.from(`floodsub:${topic}`)));
