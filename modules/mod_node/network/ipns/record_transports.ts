/**
 * Publishes and finds IPNS records: with the routing system, and over pubsub if that is enabled.
 */
import { TopicValidatorResult } from "@libp2p/gossipsub";
import type { Libp2p } from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import type { Key } from "../../storage/keystore/key.ts";
import { merge } from "../../util/async/merge.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { inlinesPublicKey, publicKeyKey, RECORD_PREFIX, recordKey } from "../ipns_record/keys.ts";
import type { Pubsub } from "../pubsub/pubsub.ts";
import { routerOf } from "../pubsub/router.ts";
import type { Routing } from "../routing/routing.ts";
import { fetchOf } from "./fetch_protocol.ts";
import { IpnsPubsub, type IpnsPubsubDeps, type Verdict } from "./ipns_pubsub.ts";
import type { RecordOptions } from "./resolver.ts";

/** The parts of the network that names use. */
export interface NameNetwork {
  readonly libp2p: Libp2p;
  readonly routing: Pick<Routing, "search" | "putQuietly" | "dht" | "router">;
  /** Names are also published over pubsub, if the fetch protocol is on. */
  readonly pubsub: Pubsub | undefined;
}

export interface RecordTransportsDeps extends NameNetwork {
  /** Returns the record of a name that was last published locally; it may have expired. */
  readonly published: (name: PeerId) => Promise<Uint8Array | undefined>;
  readonly log: NodeLog;
}

const verdicts: Readonly<Record<Verdict, TopicValidatorResult>> = {
  accept: TopicValidatorResult.Accept,
  ignore: TopicValidatorResult.Ignore,
  reject: TopicValidatorResult.Reject,
};

/** Defaults of a search: the number of records that suffices, and the timeout in milliseconds. */
const DEFAULT_COUNT = 16;
const DEFAULT_TIMEOUT_MS = 60_000;
/** Longest delay that a timer supports, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class RecordTransports {
  /** Undefined if names only use the routing system. */
  readonly pubsub: IpnsPubsub | undefined;
  readonly #routing: NameNetwork["routing"];

  constructor({ libp2p, routing, pubsub, published, log }: RecordTransportsDeps) {
    this.#routing = routing;
    const service = fetchOf(libp2p);
    if (pubsub === undefined || service === undefined) return;
    const fetch = (peer: PeerId, key: Uint8Array, signal: AbortSignal) => service.fetch(peer, key, { signal });
    const validators = routerOf(libp2p)?.topicValidators;
    const validate: IpnsPubsubDeps["validate"] = (topic, judge) => {
      validators?.set(topic, async (_, { data }) => verdicts[await judge(data)]);
      return () => validators?.delete(topic);
    };
    const names = new IpnsPubsub({ messages: pubsub, validate, fetch, published, log });
    pubsub.onPeerSubscribed = (topic, peer) => names.peerSubscribed(topic, peer);
    service.registerLookupFunction(RECORD_PREFIX, (key) => names.lookUp(key));
    this.pubsub = names;
  }

  stop(): void {
    this.pubsub?.stop();
  }

  /**
   * Publishes over all transports, each of which must succeed. @throws NodeError if no peer could
   * be reached
   */
  async publish(key: Key, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    await Promise.all([this.#store(key, bytes, signal), this.pubsub?.publish(key.id, bytes)]);
  }

  /** Whether the node has a DHT. */
  get hasDht(): boolean {
    return this.#routing.dht !== undefined;
  }

  /**
   * Stores a record of another node, and sends it to the peers closest to its name, but not to HTTP
   * routers. Finding no peer is not an error.
   */
  async sendToClosest(id: PeerId, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    await this.#routing.putQuietly(recordKey(id), bytes, signal, { delegated: false }).catch((error: unknown) => {
      if (!(error instanceof NodeError && error.code === "ROUTING_TABLE_EMPTY")) throw error;
    });
  }

  async #store({ id, publicKey }: Key, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    if (this.#routing.router.put === undefined && this.pubsub !== undefined) return;
    if (this.#routing.router.put === undefined && this.#routing.router.search !== undefined) {
      const text = "no router accepts records of names: add one to Ipns.DelegatedPublishers";
      throw new NodeError("ROUTING_TABLE_EMPTY", text);
    }
    const records = [[recordKey(id), bytes] as const];
    if (!inlinesPublicKey(id)) records.push([publicKeyKey(id), publicKey]);
    await Promise.all(records.map(([key, value]) => this.#routing.putQuietly(key, value, signal)));
  }

  /** @throws NodeError if there is no transport */
  requireAny(): void {
    if (this.#routing.router.search === undefined && this.pubsub === undefined) throw failure("ROUTING_NOT_FOUND");
  }

  /** Yields records of a name, valid or not; ends at the timeout. */
  async *search(
    id: PeerId,
    { signal, count = DEFAULT_COUNT, timeout = DEFAULT_TIMEOUT_MS, delegated }: RecordOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const ending = new AbortController();
    const signals = [ending.signal, ...(signal ? [signal] : [])];
    if (timeout > 0) signals.push(AbortSignal.timeout(Math.min(timeout, MAX_TIMER_MS)));
    const either = AbortSignal.any(signals);
    const sources: AsyncIterable<Uint8Array>[] = [
      this.#routing.search(recordKey(id), { count, signal: either, delegated }),
    ];
    if (this.pubsub !== undefined) sources.push(this.pubsub.search(id, either));
    try {
      yield* merge(sources, () => ending.abort());
    } catch (error) {
      signal?.throwIfAborted();
      if (!either.aborted) throw error;
    }
  }
}
