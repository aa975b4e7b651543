/**
 * Makes unsigned messages compatible with go-ipfs if `Pubsub.DisableSigning` is on. In go-ipfs,
 * they name their author and have a number, which together identify them. In the library, which
 * follows the specification, they have neither: it drops the messages of go-ipfs, and go-ipfs
 * considers all messages of the library to be the same message.
 */
import type { GossipSub } from "@libp2p/gossipsub";
import type { RPC } from "@libp2p/gossipsub/message";
import { peerIdFromMultihash } from "@libp2p/peer-id";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import type { PeerId } from "../../../formats/peer_id.ts";
import type { Patch, PatchNotices } from "../../swarm/patches/notices.ts";

export const patch: Patch = {
  library: "@libp2p/gossipsub",
  version: "17.1.1",
  without: "unsigned messages have no author, and are not exchanged with go-ipfs",
};

/** Author of a message, and the message's number for that author: eight bytes, big-endian. */
export interface Origin {
  readonly from: PeerId;
  readonly sequence: Uint8Array;
}

/** The parts of the library's router that this patch uses. */
interface Internals {
  validateReceivedMessage(source: PeerId, message: RPC.Message): Promise<unknown>;
  readonly mcache: { put(id: unknown, message: RPC.Message, isValidated?: boolean): boolean };
}

const SEQUENCE_SIZE = 8;

/** Origins by the data of a message: the library passes nothing else of the message on. */
const origins = new WeakMap<Uint8Array, Origin>();

/** Returns undefined for a message that names no author. */
export const originOf = ({ data }: { readonly data: Uint8Array }): Origin | undefined => origins.get(data);

/**
 * Makes a router without signatures name the authors of messages; this node is the author of its
 * own.
 */
export function nameAuthors(router: GossipSub, self: PeerId, notices: PatchNotices): void {
  const internals = router as GossipSub & Partial<Internals>;
  const { validateReceivedMessage: validate, mcache, publish } = internals;
  const put = mcache?.put;
  const parts = { validateReceivedMessage: validate, "mcache.put": put };
  if (!notices.isApplicable(patch, parts) || validate === undefined || mcache === undefined) return;
  internals.validateReceivedMessage = (source, message) => {
    const origin = originIn(message);
    const { topic, data = new Uint8Array() } = message;
    // The whole original message is forwarded nevertheless.
    return validate.call(router, source, origin === undefined ? message : { topic, data: withOrigin(data, origin) });
  };
  // The numbers begin with the current time, so that they also grow across restarts.
  let last = BigInt(Date.now()) * 1_000_000n;
  router.publish = (topic, data = new Uint8Array()) => {
    const sequence = Buffer.alloc(SEQUENCE_SIZE);
    sequence.writeBigUInt64BE(++last);
    return publish.call(router, topic, withOrigin(data, { from: self, sequence }));
  };
  // Publishing stores a message in this cache before sending it.
  mcache.put = (id, message, isValidated) => {
    const origin = message.from === undefined && message.data ? origins.get(message.data) : undefined;
    if (origin !== undefined) {
      message.from = origin.from.toMultihash().bytes;
      message.seqno = origin.sequence;
    }
    return put?.call(mcache, id, message, isValidated) ?? false;
  };
}

/** Returns the data as a new object, by which its origin can be found. */
function withOrigin(data: Uint8Array, origin: Origin): Uint8Array {
  const own = data.subarray();
  origins.set(own, origin);
  return own;
}

/** Returns undefined also for a malformed message, which the library handles. */
function originIn({ from, seqno, signature }: RPC.Message): Origin | undefined {
  if (from === undefined || seqno?.length !== SEQUENCE_SIZE || signature !== undefined) return undefined;
  try {
    return { from: peerIdFromMultihash(decodeMultihash(from)), sequence: seqno };
  } catch {
    return undefined;
  }
}
