/** Telling others of records, and asking them: over the routing system, and over publish and subscribe where that is on. */
import { TopicValidatorResult } from "@libp2p/gossipsub";
import type { Libp2p } from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import type { Key } from "../../storage/keystore/key.ts";
import { merge } from "../../util/async/merge.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { inlinesPublicKey, publicKeyKey, RECORD_PREFIX, recordKey } from "../ipns_record/keys.ts";
import { NOT_FOUND_TEXT } from "../kad/events.ts";
import type { Routing } from "../kad/routing.ts";
import type { Pubsub } from "../pubsub/pubsub.ts";
import { routerOf } from "../pubsub/router.ts";
import { fetchOf } from "./fetch_protocol.ts";
import { IpnsPubsub, type IpnsPubsubDeps, type Verdict } from "./ipns_pubsub.ts";
import type { RecordOptions } from "./resolver.ts";

/** What of the network names need. */
export interface NameNetwork {
  readonly libp2p: Libp2p;
  readonly routing: Pick<Routing, "search" | "putQuietly" | "dht">;
  /** Names go over it, too, when peers can be asked for records. */
  readonly pubsub: Pubsub | undefined;
}

export interface RecordTransportsDeps extends NameNetwork {
  /** The record of a name that was published here last; it may be valid no more. */
  readonly published: (name: PeerId) => Promise<Uint8Array | undefined>;
  readonly log: NodeLog;
}

const verdicts: Readonly<Record<Verdict, TopicValidatorResult>> = {
  accept: TopicValidatorResult.Accept,
  ignore: TopicValidatorResult.Ignore,
  reject: TopicValidatorResult.Reject,
};

const usual = { count: 16, timeout: 60_000 };
/** Longest time that a timer can be set to, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class RecordTransports {
  /** Undefined while names go over the routing system alone. */
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
    const followed = new IpnsPubsub({ messages: pubsub, validate, fetch, published, log });
    pubsub.onPeerSubscribed = (topic, peer) => followed.peerSubscribed(topic, peer);
    service.registerLookupFunction(RECORD_PREFIX, (key) => followed.lookUp(key));
    this.pubsub = followed;
  }

  stop(): void {
    this.pubsub?.stop();
  }

  /** Each of the ways must succeed. @throws NodeError when nobody could be told */
  async publish(key: Key, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    await Promise.all([this.#store(key, bytes, signal), this.pubsub?.publish(key.id, bytes)]);
  }

  async #store({ id, publicKey }: Key, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    if (this.#routing.dht === undefined && this.pubsub !== undefined) return;
    const records = [[recordKey(id), bytes] as const];
    if (!inlinesPublicKey(id)) records.push([publicKeyKey(id), publicKey]);
    await Promise.all(records.map(([key, value]) => this.#routing.putQuietly(key, value, signal)));
  }

  /** @throws NodeError when no records can come from others */
  requireAny(): void {
    if (this.#routing.dht === undefined && this.pubsub === undefined) throw new NodeError(NOT_FOUND_TEXT);
  }

  /** Records of a name, of whatever worth; ends when the time is over. */
  async *search(
    id: PeerId,
    { signal, count = usual.count, timeout = usual.timeout }: RecordOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const over = new AbortController();
    const signals = [over.signal, ...(signal ? [signal] : [])];
    if (timeout > 0) signals.push(AbortSignal.timeout(Math.min(timeout, MAX_TIMER_MS)));
    const either = AbortSignal.any(signals);
    const sources: AsyncIterable<Uint8Array>[] = [this.#routing.search(recordKey(id), { count, signal: either })];
    if (this.pubsub !== undefined) sources.push(this.pubsub.search(id, either));
    try {
      yield* merge(sources, () => over.abort());
    } catch (error) {
      signal?.throwIfAborted();
      if (!either.aborted) throw error;
    }
  }
}
