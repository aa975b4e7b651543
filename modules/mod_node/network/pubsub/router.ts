/** Sets up libp2p's gossipsub according to the configuration, as a service of libp2p. */
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
import { failure } from "../../util/errors.ts";
import { parseDuration } from "../../util/go/duration.ts";
import { MAX_RPC_SIZE } from "./limits.ts";
import { originOf } from "./patches/name_authors.ts";

const SERVICE = "pubsub";
const FLOODSUB = "/floodsub/1.0.0";
/**
 * Default number of milliseconds for which message ids are remembered, so that each message is
 * delivered once.
 */
const SEEN_TTL_MS = 120_000;
/** Maximum number of bytes that are queued for one peer; above it, its stream is aborted. */
const MAX_OUTBOUND_BUFFER = 8 * MAX_RPC_SIZE;
/**
 * Parameters of the scores that peers get for their behaviour. As in go-ipfs, peers that share an
 * address, for example on one machine or in one household, are not penalized. Scores of
 * disconnected peers are forgotten once they would have decayed.
 */
const SCORE_PARAMS = { IPColocationFactorWeight: 0, retainScore: 60_000 };

/** @throws NodeError for an unknown `Pubsub.Router` */
export function pubsubService(config: Repo["config"]): ServiceFactoryMap {
  const name = config.value("Pubsub.Router") || "gossipsub";
  if (name !== "gossipsub" && name !== "floodsub")
    throw failure("CONFIG_INVALID", { reason: `unknown pubsub router ${name}` });
  const seenTtl = config.value("Pubsub.SeenMessagesTTL");
  const make = gossipsub({
    globalSignaturePolicy: config.value("Pubsub.DisableSigning") ? StrictNoSign : StrictSign,
    msgIdFn: messageId,
    seenTTL: seenTtl === null ? SEEN_TTL_MS : parseDuration(seenTtl),
    floodPublish: true,
    emitSelf: true,
    allowPublishToZeroTopicPeers: true,
    ignoreDuplicatePublishError: true,
    // Delivers the messages of a peer in order, and reads the peer no faster than that.
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

/** Returns undefined while pubsub is disabled. */
export const routerOf = ({ services }: Pick<Libp2p, "services">): GossipSub | undefined =>
  (services as Readonly<Record<string, unknown>>)[SERVICE] as GossipSub | undefined;

/**
 * Returns a message's id as all implementations define it: author and sequence number. A message
 * with neither is hashed.
 */
function messageId(message: Message): Uint8Array {
  if (message.type === "signed") return Buffer.concat([message.from.toMultihash().bytes, sequenceOf(message)]);
  const origin = originOf(message);
  if (origin !== undefined) return Buffer.concat([origin.from.toMultihash().bytes, origin.sequence]);
  return createHash("sha256").update(message.topic).update("\0").update(message.data).digest();
}

/** Returns the sequence number of a message: eight bytes, big-endian. */
export function sequenceOf({ sequenceNumber }: { readonly sequenceNumber: bigint }): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(sequenceNumber);
  return bytes;
}
