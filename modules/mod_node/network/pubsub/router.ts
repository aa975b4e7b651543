/** libp2p's gossipsub, set up as the configuration says, as a service of libp2p. */
import { createHash } from "node:crypto";
import {
  type GossipSub,
  type GossipSubComponents,
  gossipsub,
  type Message,
  StrictNoSign,
  StrictSign,
} from "@libp2p/gossipsub";
import type { Libp2p, ServiceFactoryMap } from "libp2p";
import type { Repo } from "../../storage/repo/repo.ts";
import { NodeError } from "../../util/errors.ts";
import { parseDuration } from "../../util/go/duration.ts";
import { MAX_RPC_SIZE } from "./limits.ts";
import { originOf } from "./patches/name_authors.ts";

const SERVICE = "pubsub";
const FLOODSUB = "/floodsub/1.0.0";
/** Milliseconds for which the ids of messages are remembered, where nothing is said: a message is delivered once. */
const SEEN_TTL_MS = 120_000;
/** Bytes that may wait for one peer; beyond, its stream is given up. */
const MAX_OUTBOUND_BUFFER = 8 * MAX_RPC_SIZE;
/**
 * Peers are scored by what they do. As in go-ipfs, sharing an address, as peers on one machine or in one household do,
 * costs nothing; scores of peers that left are forgotten once they would have decayed.
 */
const SCORE_PARAMS = { IPColocationFactorWeight: 0, retainScore: 60_000 };

/** @throws NodeError for an unknown `Pubsub.Router` */
export function pubsubService(config: Repo["config"]): ServiceFactoryMap {
  const name = config.value("Pubsub.Router") || "gossipsub";
  if (name !== "gossipsub" && name !== "floodsub") throw new NodeError(`unknown pubsub router ${name}`);
  const seenTtl = config.value("Pubsub.SeenMessagesTTL");
  const make = gossipsub({
    globalSignaturePolicy: config.value("Pubsub.DisableSigning") ? StrictNoSign : StrictSign,
    msgIdFn: messageId,
    seenTTL: seenTtl === null ? SEEN_TTL_MS : parseDuration(seenTtl),
    floodPublish: true,
    emitSelf: true,
    allowPublishToZeroTopicPeers: true,
    ignoreDuplicatePublishError: true,
    // Messages of a peer are delivered in order, and the peer is read no faster than that.
    awaitRpcHandler: true,
    awaitRpcMessageHandler: true,
    maxOutboundBufferSize: MAX_OUTBOUND_BUFFER,
    scoreParams: SCORE_PARAMS,
  });
  return {
    [SERVICE]: (components) => {
      const router = make(components as unknown as GossipSubComponents);
      if (name === "floodsub") router.protocols = [FLOODSUB];
      return router;
    },
  };
}

/** Undefined while pubsub is off. */
export const routerOf = ({ services }: Pick<Libp2p, "services">): GossipSub | undefined =>
  (services as Readonly<Record<string, unknown>>)[SERVICE] as GossipSub | undefined;

/** As all implementations make it: author and sequence number. A message that has neither is hashed. */
function messageId(message: Message): Uint8Array {
  if (message.type === "signed") return Buffer.concat([message.from.toMultihash().bytes, sequenceOf(message)]);
  const origin = originOf(message);
  if (origin !== undefined) return Buffer.concat([origin.from.toMultihash().bytes, origin.sequence]);
  return createHash("sha256").update(message.topic).update("\0").update(message.data).digest();
}

/** The sequence number of a message, eight bytes, big-endian. */
export function sequenceOf({ sequenceNumber }: { readonly sequenceNumber: bigint }): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(sequenceNumber);
  return bytes;
}
