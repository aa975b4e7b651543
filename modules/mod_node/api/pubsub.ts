/** Pubsub: messages under topics, to all subscribers. */
import type { PeerId } from "../formats/peer_id.ts";
import { MAX_MESSAGE_SIZE } from "../network/pubsub/limits.ts";
import type { Pubsub } from "../network/pubsub/pubsub.ts";
import type { PubsubMessage as NetworkMessage } from "../network/pubsub/subscription.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { readUpTo } from "../util/async/read_all.ts";
import { failure } from "../util/errors.ts";
import { type ByteSource, type CallOptions, callSignal, piecesOf } from "./common.ts";

/** A message that names its author. With `Pubsub.DisableSigning` the author is not proven. */
export interface SignedMessage {
  readonly type: "signed";
  /** The peer that published the message. */
  readonly from: PeerId;
  readonly topic: string;
  readonly data: Uint8Array;
  /** Sequence number of the publisher. */
  readonly sequenceNumber: bigint;
  /**
   * Always empty: the node verifies the signature on arrival, and the RPC API does not report it.
   */
  readonly signature: Uint8Array;
}

/**
 * A message that names no author, because its sender does not sign messages; the client libraries
 * omit it.
 */
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
   * Called for an error that a handler throws, and with `fatal` for an error that ends the
   * subscription early. By default such errors go to the log of the node.
   */
  readonly onError?: ((error: Error, fatal: boolean, message?: PubsubMessage) => void) | undefined;
  /** Ignored: other subscribers are always searched for. */
  readonly discover?: boolean | undefined;
}

/** All methods reject with a NodeError if pubsub is disabled, and while the node is offline. */
export interface PubsubApi {
  /** Resolves to the topics that this node is subscribed to. */
  ls(options?: CallOptions): Promise<readonly string[]>;
  /**
   * Resolves to the sorted ids of connected peers that are subscribed to a topic; without a topic,
   * to those of all peers that speak pubsub.
   */
  peers(topic?: string, options?: CallOptions): Promise<readonly string[]>;
  /**
   * Resolves when the message is on its way to all known subscribers; there may be none.
   *
   * @throws NodeError for a message that peers would refuse: topic and data together may have at
   * most 1 MiB less 4 KiB
   */
  publish(topic: string, data: ByteSource, options?: CallOptions): Promise<void>;
  /**
   * Subscribes a handler to a topic; resolves as soon as it receives messages, including those of
   * this node. The subscription ends with the signal or with `unsubscribe`. A slow handler misses
   * the oldest messages.
   *
   * @throws NodeError for a handler that is subscribed to this topic already
   */
  subscribe(topic: string, handler: PubsubHandler, options?: PubsubSubscribeOptions): Promise<void>;
  /** Unsubscribes one handler from a topic, or all of them if none is given. */
  unsubscribe(topic: string, handler?: PubsubHandler, options?: CallOptions): Promise<void>;
  /**
   * Like `subscribe`, but yields the messages; throws the reason of the signal when it is aborted.
   */
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
      // Read only as much as is needed to detect that the message is too long.
      const whole = data instanceof Uint8Array ? data : await readUpTo(piecesOf(data), MAX_MESSAGE_SIZE + 1);
      await pubsub.publish(topic, whole);
    },
    async subscribe(topic, handler, { onError, ...options } = {}) {
      const handlers = subscriptions.get(topic) ?? new Map<PubsubHandler, AbortController>();
      if (handlers.has(handler)) throw failure("SUBSCRIBED_ALREADY", { topic });
      const own = new AbortController();
      const signal = AbortSignal.any([own.signal, callSignal(options)]);
      subscriptions.set(topic, handlers.set(handler, own));
      const left = () => {
        if (handlers.get(handler) === own) leave(topic, handler);
      };
      const failed: NonNullable<typeof onError> = (error, fatal, message) => {
        if (onError !== undefined) onError(error, fatal, message);
        else node.log.write("pubsub", "warn", `error in a subscription to ${topic}: ${error.message}`);
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
