/** Messages under topics, to whoever follows these (network section 11). */
import type { GossipsubMessage, Message, SubscriptionChangeData } from "@libp2p/gossipsub";
import type { Libp2p } from "libp2p";
import type { PeerId } from "../../formats/peer_id.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { Inbound } from "./inbound.ts";
import { MAX_MESSAGE_SIZE } from "./limits.ts";
import { Outbound } from "./outbound.ts";
import { type Router, sequenceOf } from "./router.ts";
import { Subscription } from "./subscription.ts";

export interface PubsubMessage {
  readonly topic: string;
  readonly data: Uint8Array;
  /** Who published it; undefined where messages are not signed. */
  readonly from: PeerId | undefined;
  /** Its number among the messages of who published it, eight bytes; undefined where messages are not signed. */
  readonly sequence: Uint8Array | undefined;
}

export interface PubsubDeps {
  readonly libp2p: Pick<Libp2p, "use" | "getConnections">;
  readonly router: Router;
  readonly log: NodeLog;
}

/** Looks for others from when the first reads a topic here until the last has left. */
export interface TopicDiscovery {
  start(topic: string): void;
  stopTopic(topic: string): void;
  stop(): void;
}

/** Made before libp2p starts. */
export class Pubsub {
  /** Set by the network; without it only those who are connected are heard. */
  discovery: TopicDiscovery | undefined;
  /** Told of a peer that follows a topic from now on. */
  onPeerSubscribed: ((topic: string, peer: PeerId) => void) | undefined;
  readonly #router: Router;
  readonly #log: NodeLog;
  readonly #outbound: Outbound;
  readonly #readers = new Map<string, Set<Subscription>>();

  constructor({ libp2p, router, log }: PubsubDeps) {
    this.#router = router;
    this.#log = log;
    this.#outbound = new Outbound(libp2p, router);
    const inbound = new Inbound({ router, isSubscribed: (topic) => this.#readers.has(topic) });
    router.onIncomingStream = (stream, connection) => inbound.add(stream, connection);
    for (const protocol of router.protocols) libp2p.use(protocol, this.#outbound.middleware);
    router.addEventListener("gossipsub:message", ({ detail }) => this.#dispatch(detail));
    router.addEventListener("subscription-change", ({ detail }) => this.#tellOf(detail));
  }

  /** Those that somebody follows here. */
  topics(): readonly string[] {
    return [...this.#readers.keys()];
  }

  /** Connected peers that follow a topic; without one those that take part. In the order of their texts. */
  peers(topic?: string): readonly PeerId[] {
    const peers = topic === undefined ? this.#router.getPeers() : this.#router.getSubscribers(topic);
    return [...peers].sort((a, b) => (a.toString() < b.toString() ? -1 : 1));
  }

  /**
   * Resolves when the message is on its way to all who are known to follow the topic; nobody need to.
   *
   * @throws NodeError of a message that no node would take
   */
  async publish(topic: string, data: Uint8Array): Promise<void> {
    if (Buffer.byteLength(topic) + data.length > MAX_MESSAGE_SIZE) {
      throw new NodeError(`the message is too long: topic and data may have ${MAX_MESSAGE_SIZE} bytes together`);
    }
    await this.#outbound.ready(this.#router.getSubscribers(topic));
    const { recipients } = await this.#router.publish(topic, data);
    await this.#outbound.drained(recipients);
  }

  /**
   * Messages from now on, those of this node among them. A reader who is slow misses those that have waited longest.
   * When the signal comes it rejects with the reason.
   */
  subscribe(topic: string, signal?: AbortSignal): AsyncIterableIterator<PubsubMessage, void, undefined> {
    signal?.throwIfAborted();
    const leave = () => subscription.end(signal?.reason);
    const subscription: Subscription = new Subscription(() => {
      signal?.removeEventListener("abort", leave);
      this.#leave(topic, subscription);
    });
    signal?.addEventListener("abort", leave, { once: true });
    this.#join(topic, subscription);
    return subscription;
  }

  #join(topic: string, subscription: Subscription): void {
    const readers = this.#readers.get(topic);
    readers?.add(subscription);
    if (readers !== undefined) return;
    this.#readers.set(topic, new Set([subscription]));
    this.#router.subscribe(topic);
    this.discovery?.start(topic);
  }

  #leave(topic: string, subscription: Subscription): void {
    const readers = this.#readers.get(topic);
    readers?.delete(subscription);
    if (readers?.size !== 0) return;
    this.#readers.delete(topic);
    this.discovery?.stopTopic(topic);
    if (this.#router.isStarted()) this.#router.unsubscribe(topic);
  }

  #dispatch({ msg }: GossipsubMessage): void {
    const readers = this.#readers.get(msg.topic);
    if (readers === undefined) return;
    const message = shown(msg);
    for (const reader of readers) {
      const dropped = reader.put(message);
      if (dropped > 0) this.#log.write("pubsub", "warn", `a slow reader of ${msg.topic} misses ${dropped} messages`);
    }
  }

  #tellOf({ peerId, subscriptions }: SubscriptionChangeData): void {
    for (const { topic, subscribe } of subscriptions) if (subscribe) this.onPeerSubscribed?.(topic, peerId);
  }

  /** Readers get what waits for them, then the end. */
  stop(): void {
    this.discovery?.stop();
    for (const readers of [...this.#readers.values()]) for (const reader of [...readers]) reader.end();
    this.#outbound.stop();
  }
}

function shown(message: Message): PubsubMessage {
  const { topic, data } = message;
  if (message.type === "unsigned") return { topic, data, from: undefined, sequence: undefined };
  return { topic, data, from: message.from, sequence: sequenceOf(message) };
}
