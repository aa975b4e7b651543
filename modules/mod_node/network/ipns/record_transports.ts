/** Telling others of records, and asking them: over the routing system, and over publish and subscribe where that is on. */
import { TopicValidatorResult } from "@libp2p/gossipsub";
import type { Libp2p } from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import type { Key } from "../../storage/keystore/key.ts";
import { merge } from "../../util/async/merge.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { publicKeyKey, recordKey, recordPrefix, tellsKey } from "../ipns_record/keys.ts";
import { notFoundText } from "../kad/events.ts";
import type { Routing } from "../kad/routing.ts";
import type { Pubsub } from "../pubsub/pubsub.ts";
import { routerOf } from "../pubsub/router.ts";
import { fetchOf } from "./fetching.ts";
import { FollowedNames, type FollowedParts, type Verdict } from "./ipns_pubsub.ts";
import type { RecordOptions } from "./resolver.ts";

/** What of the network names need. */
export interface NameNetwork {
  readonly libp2p: Libp2p;
  readonly routing: Pick<Routing, "search" | "store" | "tables">;
  /** Names go over it, too, when peers can be asked for records. */
  readonly pubsub: Pubsub | undefined;
}

export interface OthersParts extends NameNetwork {
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
const longestTimer = 2 ** 31 - 1;

export class Others {
  /** Undefined while names go over the routing system alone. */
  readonly followed: FollowedNames | undefined;
  readonly #routing: NameNetwork["routing"];

  constructor({ libp2p, routing, pubsub, published, log }: OthersParts) {
    this.#routing = routing;
    const fetch = fetchOf(libp2p);
    if (pubsub === undefined || fetch === undefined) return;
    const ask = (peer: PeerId, key: Uint8Array, signal: AbortSignal) => fetch.fetch(peer, key, { signal });
    const validators = routerOf(libp2p)?.topicValidators;
    const guard: FollowedParts["guard"] = (topic, judge) => {
      validators?.set(topic, async (_, { data }) => verdicts[await judge(data)]);
      return () => validators?.delete(topic);
    };
    const followed = new FollowedNames({ messages: pubsub, guard, ask, published, log });
    pubsub.joined = (topic, peer) => followed.joined(topic, peer);
    fetch.registerLookupFunction(recordPrefix, (key) => followed.answer(key));
    this.followed = followed;
  }

  stop(): void {
    this.followed?.stop();
  }

  /** Each of the ways must succeed. @throws NodeError when nobody could be told */
  async tell(key: Key, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    await Promise.all([this.#store(key, bytes, signal), this.followed?.publish(key.id, bytes)]);
  }

  async #store({ id, publicKey }: Key, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    if (this.#routing.tables === undefined && this.followed !== undefined) return;
    const records = [[recordKey(id), bytes] as const];
    if (!tellsKey(id)) records.push([publicKeyKey(id), publicKey]);
    await Promise.all(records.map(([key, value]) => this.#routing.store(key, value, signal)));
  }

  /** @throws NodeError when no records can come from others */
  requireAny(): void {
    if (this.#routing.tables === undefined && this.followed === undefined) throw new NodeError(notFoundText);
  }

  /** Records of a name, of whatever worth; ends when the time is over. */
  async *search(
    id: PeerId,
    { signal, count = usual.count, timeout = usual.timeout }: RecordOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const over = new AbortController();
    const signals = [over.signal, ...(signal ? [signal] : [])];
    if (timeout > 0) signals.push(AbortSignal.timeout(Math.min(timeout, longestTimer)));
    const either = AbortSignal.any(signals);
    const sources: AsyncIterable<Uint8Array>[] = [this.#routing.search(recordKey(id), { count, signal: either })];
    if (this.followed !== undefined) sources.push(this.followed.search(id, either));
    try {
      yield* merge(sources, () => over.abort());
    } catch (error) {
      signal?.throwIfAborted();
      if (!either.aborted) throw error;
    }
  }
}
