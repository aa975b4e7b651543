/** The library that spreads messages, set up in the way that the configuration says, as a service of libp2p. */
import { createHash } from "node:crypto";
import {
  type GossipSub,
  type GossipSubComponents,
  gossipsub,
  type Message,
  StrictNoSign,
  StrictSign,
} from "@libp2p/gossipsub";
import type { RPC } from "@libp2p/gossipsub/message";
import type { Connection, PeerId, Stream } from "@libp2p/interface";
import type { Libp2p, ServiceFactoryMap } from "libp2p";
import type { Repo } from "../../storage/repo/repo.ts";
import { NodeError } from "../../util/errors.ts";
import { MAX_RPC_SIZE } from "./limits.ts";

/** What is used of the library that its own interface leaves out; `pubsubService` sees to it that it is there. */
export interface Router extends GossipSub {
  isStarted(): boolean;
  /** Called for each stream that a peer opens. */
  onIncomingStream(stream: Stream, connection: Connection): void;
  /** A peer takes part: a stream to it is opened unless there is one. */
  onPeerConnected(id: PeerId, connection: Connection): void;
  /** @throws Error of bytes that are none, and of more than one message may hold */
  decodeRpc(bytes: Uint8Array): RPC;
  /** Resolves when all of it is checked, handed out and passed on. */
  handleReceivedRpc(from: PeerId, rpc: RPC): Promise<void>;
}

const internals = ["isStarted", "onIncomingStream", "onPeerConnected", "decodeRpc", "handleReceivedRpc"] as const;

const serviceName = "pubsub";
const floodsub = "/floodsub/1.0.0";
/** Messages known by their id are not handed out again. */
const seenFor = 120_000;
/** Bytes that may wait for one peer: beyond it the stream is given up. */
const mostWaiting = 8 * MAX_RPC_SIZE;
/**
 * Peers are judged by what they do. That many share an address, as all of one machine or one household do, is held
 * against nobody, as little as in the reference; and of those who have gone nothing is remembered that would have faded.
 */
const judgement = { IPColocationFactorWeight: 0, retainScore: 60_000 };

/** @throws NodeError of a router that there is not */
export function pubsubService(config: Repo["config"]): ServiceFactoryMap {
  const name = config.value("Pubsub.Router") || "gossipsub";
  if (name !== "gossipsub" && name !== "floodsub") throw new NodeError(`unknown pubsub router ${name}`);
  const make = gossipsub({
    globalSignaturePolicy: config.value("Pubsub.DisableSigning") ? StrictNoSign : StrictSign,
    msgIdFn: messageId,
    seenTTL: seenFor,
    floodPublish: true,
    emitSelf: true,
    allowPublishToZeroTopicPeers: true,
    ignoreDuplicatePublishError: true,
    // One after the other: messages of a peer are handed out in their order, and it is read no faster.
    awaitRpcHandler: true,
    awaitRpcMessageHandler: true,
    maxOutboundBufferSize: mostWaiting,
    scoreParams: judgement,
  });
  return {
    [serviceName]: (components) => {
      const router = make(components as unknown as GossipSubComponents) as Router;
      for (const method of internals) {
        if (typeof router[method] !== "function") throw new Error(`@libp2p/gossipsub has no ${method} any more`);
      }
      if (name === "floodsub") router.protocols = [floodsub];
      return router;
    },
  };
}

/** Undefined when it is switched off. */
export const routerOf = ({ services }: Pick<Libp2p, "services">): Router | undefined =>
  (services as Readonly<Record<string, unknown>>)[serviceName] as Router | undefined;

/** As peers of every make count it: who sent it, and which of theirs it is. Without signatures nobody can tell these. */
function messageId(message: Message): Uint8Array {
  if (message.type === "signed") return Buffer.concat([message.from.toMultihash().bytes, sequenceOf(message)]);
  return createHash("sha256").update(message.topic).update("\0").update(message.data).digest();
}

/** The number of a message, eight bytes. */
export function sequenceOf({ sequenceNumber }: { readonly sequenceNumber: bigint }): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(sequenceNumber);
  return bytes;
}
