/** Publish and subscribe: exchanges messages under topics with the peers that subscribe to them. */

import {
  type GossipSub,
  type GossipsubMessage,
  type Message,
  StrictNoSign,
  type SubscriptionChangeData,
} from "@libp2p/gossipsub";
import type { Libp2p } from "libp2p";
import type { PeerId } from "../../formats/peer_id.ts";
import { counted } from "../../util/counted.ts";
import { failure } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { PatchNotices } from "../swarm/patches/notices.ts";
import { Inbound } from "./inbound.ts";
import { MAX_MESSAGE_SIZE } from "./limits.ts";
import { Outbound, type OutboundDeps } from "./outbound.ts";
import { internalsOf } from "./patches/gossipsub.ts";
import { nameAuthors, originOf } from "./patches/name_authors.ts";
import { sequenceOf } from "./router.ts";
import { type PubsubMessage, Subscription } from "./subscription.ts";

export interface PubsubDeps {
  readonly libp2p: Pick<Libp2p, "use" | "getConnections" | "peerId">;
  readonly router: GossipSub;
  readonly log: NodeLog;
  readonly patches?: PatchNotices;
}

/**
 * Finds peers that subscribe to a topic, from the topic's first local subscription until its last
 * one ends.
 */
export interface TopicDiscovery {
  start(topic: string): void;
  stopTopic(topic: string): void;
  stop(): void;
}

/** Create it before libp2p starts. */
export class Pubsub {
  /** Set by the network; without it only messages of connected peers arrive. */
  discovery: TopicDiscovery | undefined;
  /** Called when a peer subscribes to a topic. */
  onPeerSubscribed: ((topic: string, peer: PeerId) => void) | undefined;
  readonly #router: GossipSub;
  readonly #isRouterStarted: () => boolean;
  readonly #log: NodeLog;
  readonly #outbound: Outbound;
  readonly #subscriptions = new Map<string, Set<Subscription>>();

  constructor({ libp2p, router, log, patches = new PatchNotices() }: PubsubDeps) {
    const internals = internalsOf(router, patches);
    this.#router = router;
    this.#isRouterStarted = () => internals?.isStarted() ?? true;
    this.#log = log;
    const protocols = () => router.protocols;
    const reopen: OutboundDeps["reopen"] = internals && ((id, connection) => internals.onPeerConnected(id, connection));
    this.#outbound = new Outbound(libp2p, { protocols, reopen });
    if (internals !== undefined) {
      const inbound = new Inbound({ router: internals, isSubscribed: (topic) => this.#subscriptions.has(topic) });
      internals.onIncomingStream = (stream, connection) => inbound.add(stream, connection);
    }
    if (router.globalSignaturePolicy === StrictNoSign) nameAuthors(router, libp2p.peerId, patches);
    for (const protocol of router.protocols) libp2p.use(protocol, this.#outbound.middleware);
    router.addEventListener("gossipsub:message", ({ detail }) => this.#dispatch(detail));
    router.addEventListener("subscription-change", ({ detail }) => this.#onSubscriptionChange(detail));
  }

  /** Returns the topics that have a local subscription. */
  topics(): readonly string[] {
    return [...this.#subscriptions.keys()];
  }

  /**
   * Returns the connected peers that subscribe to the topic, sorted by text; without a topic, all
   * peers that speak pubsub.
   */
  peers(topic?: string): readonly PeerId[] {
    const peers = topic === undefined ? this.#router.getPeers() : this.#router.getSubscribers(topic);
    return [...peers].sort((a, b) => (a.toString() < b.toString() ? -1 : 1));
  }

  /**
   * Resolves when the message is on its way to all known subscribers, of which there may be none.
   *
   * @throws NodeError for a message that is too long for other nodes
   */
  async publish(topic: string, data: Uint8Array): Promise<void> {
    if (Buffer.byteLength(topic) + data.length > MAX_MESSAGE_SIZE) {
      throw failure("INPUT_TOO_LARGE", {
        reason: `the message is too long: topic and data may have ${MAX_MESSAGE_SIZE} bytes together`,
      });
    }
    await this.#outbound.ready(this.#router.getSubscribers(topic));
    const { recipients } = await this.#router.publish(topic, data);
    await this.#outbound.drained(recipients);
  }

  /**
   * Yields messages from now on, including those of this node. A slow reader misses the oldest
   * messages. Rejects with the reason of the signal.
   */
  subscribe(topic: string, signal?: AbortSignal): AsyncIterableIterator<PubsubMessage, void, undefined> {
    signal?.throwIfAborted();
    const abort = () => subscription.end(signal?.reason);
    const subscription: Subscription = new Subscription(() => {
      signal?.removeEventListener("abort", abort);
      this.#remove(topic, subscription);
    });
    signal?.addEventListener("abort", abort, { once: true });
    this.#add(topic, subscription);
    return subscription;
  }

  #add(topic: string, subscription: Subscription): void {
    const subscriptions = this.#subscriptions.get(topic);
    subscriptions?.add(subscription);
    if (subscriptions !== undefined) return;
    this.#subscriptions.set(topic, new Set([subscription]));
    this.#router.subscribe(topic);
    this.discovery?.start(topic);
  }

  #remove(topic: string, subscription: Subscription): void {
    const subscriptions = this.#subscriptions.get(topic);
    subscriptions?.delete(subscription);
    if (subscriptions?.size !== 0) return;
    this.#subscriptions.delete(topic);
    this.discovery?.stopTopic(topic);
    if (this.#isRouterStarted()) this.#router.unsubscribe(topic);
  }

  #dispatch({ msg }: GossipsubMessage): void {
    const subscriptions = this.#subscriptions.get(msg.topic);
    if (subscriptions === undefined) return;
    const message = toPubsubMessage(msg);
    for (const subscription of subscriptions) {
      const dropped = subscription.put(message);
      if (dropped > 0)
        this.#log.write("pubsub", "warn", `a slow reader of ${msg.topic} missed ${counted(dropped, "message")}`);
    }
  }

  #onSubscriptionChange({ peerId, subscriptions }: SubscriptionChangeData): void {
    for (const { topic, subscribe } of subscriptions) if (subscribe) this.onPeerSubscribed?.(topic, peerId);
  }

  /** Stops pubsub. Subscriptions still deliver their queued messages, then end. */
  stop(): void {
    this.discovery?.stop();
    for (const subscriptions of [...this.#subscriptions.values()]) for (const each of [...subscriptions]) each.end();
    this.#outbound.stop();
  }
}

function toPubsubMessage(message: Message): PubsubMessage {
  const { topic, data } = message;
  if (message.type === "unsigned") return { topic, data, from: undefined, sequence: undefined, ...originOf(message) };
  return { topic, data, from: message.from, sequence: sequenceOf(message) };
}
