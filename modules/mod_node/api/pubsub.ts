/** Pubsub: messages under topics, to all subscribers. */
import type { PeerId } from "../formats/peer_id.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { MAX_MESSAGE_SIZE } from "../network/pubsub/limits.ts";
import type { Pubsub } from "../network/pubsub/pubsub.ts";
import type { PubsubMessage as NetworkMessage } from "../network/pubsub/subscription.ts";
import { readUpTo } from "../util/async/read_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import { type ByteSource, type CallOptions, callSignal, piecesOf } from "./common.ts";

/** A message that names its author. Where `Pubsub.DisableSigning` is on that is not proven. */
export interface SignedMessage {
  readonly type: "signed";
  /** The peer that published the message. */
  readonly from: PeerId;
  readonly topic: string;
  readonly data: Uint8Array;
  /** Sequence number of the publisher. */
  readonly sequenceNumber: bigint;
  /** Empty: it was checked when the message came, if there was one, and the RPC API does not tell it. */
  readonly signature: Uint8Array;
}

/** A message that names no author, as other programs may send it without signing; the client libraries leave it out. */
export interface UnsignedMessage {
  readonly type: "unsigned";
  readonly topic: string;
  readonly data: Uint8Array;
}

export type PubsubMessage = SignedMessage | UnsignedMessage;

export type PubsubHandler =
  | ((message: PubsubMessage) => void)
  | { readonly handleEvent: (message: PubsubMessage) => void };

export interface PubsubSubscribeOptions extends CallOptions {
  /**
   * Told of a handler that throws, and with `fatal` of what ends the subscription before it was left. By default such
   * stands in the log of the node.
   */
  readonly onError?: ((error: Error, fatal: boolean, message?: PubsubMessage) => void) | undefined;
  /** Ignored: other subscribers are always searched for. */
  readonly discover?: boolean | undefined;
}

/** Its methods reject with a NodeError if pubsub is disabled, and while the node is offline. */
export interface PubsubApi {
  /** The topics that this node is subscribed to. */
  ls(options?: CallOptions): Promise<readonly string[]>;
  /** Sorted ids of the connected peers that are subscribed to a topic; without a topic, of all that speak pubsub. */
  peers(topic?: string, options?: CallOptions): Promise<readonly string[]>;
  /**
   * Resolves when the message is on its way to all who are known to be subscribed; nobody need to.
   *
   * @throws NodeError of a message that no node would take: topic and data have 1 MiB less 4 KiB together at most
   */
  publish(topic: string, data: ByteSource, options?: CallOptions): Promise<void>;
  /**
   * Resolves when messages are handed to the handler from now on, those of this node among them. It ends with the signal,
   * or with `unsubscribe`. A handler that is slow misses those that have waited longest.
   *
   * @throws NodeError of a handler that has this topic already
   */
  subscribe(topic: string, handler: PubsubHandler, options?: PubsubSubscribeOptions): Promise<void>;
  /** Unsubscribes one handler from a topic, or all of them if none is given. */
  unsubscribe(topic: string, handler?: PubsubHandler, options?: CallOptions): Promise<void>;
  /** Like `subscribe`, but yields the messages; throws the reason of the signal when it is aborted. */
  messages(topic: string, options?: CallOptions): Promise<AsyncIterable<PubsubMessage>>;
}

export function pubsubApi(node: LowLevelNode): PubsubApi {
  const subscriptions = new Map<string, Map<PubsubHandler, AbortController>>();
  const opened = async (): Promise<Pubsub> => {
    const pubsub = node.online ? (await node.network()).pubsub : undefined;
    if (pubsub === undefined) throw failure("PUBSUB_OFF");
    return pubsub;
  };
  const messages = async (topic: string, signal: AbortSignal) => shownAll((await opened()).subscribe(topic, signal));
  const leave = (topic: string, handler: PubsubHandler) => {
    const handlers = subscriptions.get(topic);
    handlers?.get(handler)?.abort();
    handlers?.delete(handler);
    if (handlers?.size === 0) subscriptions.delete(topic);
  };
  return {
    ls: async () => (await opened()).topics(),
    peers: async (topic) => (await opened()).peers(topic).map(String),
    async publish(topic, data) {
      const pubsub = await opened();
      // Read only as much as shows that it is too long.
      const whole = data instanceof Uint8Array ? data : await readUpTo(piecesOf(data), MAX_MESSAGE_SIZE + 1);
      await pubsub.publish(topic, whole);
    },
    async subscribe(topic, handler, { onError, ...options } = {}) {
      const handlers = subscriptions.get(topic) ?? new Map<PubsubHandler, AbortController>();
      if (handlers.has(handler)) throw new NodeError(`Already subscribed to ${topic} with this handler`);
      const own = new AbortController();
      const signal = AbortSignal.any([own.signal, callSignal(options)]);
      subscriptions.set(topic, handlers.set(handler, own));
      const left = () => {
        if (handlers.get(handler) === own) leave(topic, handler);
      };
      const failed: NonNullable<typeof onError> = (error, fatal, message) => {
        if (onError !== undefined) onError(error, fatal, message);
        else node.log.write("pubsub", "warn", `a subscription to ${topic}: ${error.message}`);
      };
      try {
        void deliver(await messages(topic, signal), handler, failed, signal).finally(left);
      } catch (error) {
        left();
        throw error;
      }
    },
    async unsubscribe(topic, handler) {
      const handlers = handler === undefined ? [...(subscriptions.get(topic)?.keys() ?? [])] : [handler];
      for (const each of handlers) leave(topic, each);
    },
    messages: (topic, options = {}) => messages(topic, callSignal(options)),
  };
}

/** Rejects only if `failed` throws. */
async function deliver(
  messages: AsyncIterable<PubsubMessage>,
  handler: PubsubHandler,
  failed: (error: Error, fatal: boolean, message?: PubsubMessage) => void,
  signal: AbortSignal,
): Promise<void> {
  const hand = typeof handler === "function" ? handler : (message: PubsubMessage) => handler.handleEvent(message);
  try {
    for await (const message of messages) {
      try {
        hand(message);
      } catch (error) {
        failed(error as Error, false, message);
      }
    }
  } catch (error) {
    if (!signal.aborted) failed(error as Error, true);
  }
}

async function* shownAll(messages: AsyncIterable<NetworkMessage>): AsyncGenerator<PubsubMessage, void, undefined> {
  for await (const { topic, data, from, sequence } of messages) {
    if (from === undefined || sequence === undefined) yield { type: "unsigned", topic, data };
    else {
      const sequenceNumber = Buffer.from(sequence).readBigUInt64BE();
      yield { type: "signed", from, topic, data, sequenceNumber, signature: new Uint8Array() };
    }
  }
}
