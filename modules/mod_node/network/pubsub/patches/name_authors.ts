/**
 * Messages without a signature as go-ipfs has them, where `Pubsub.DisableSigning` is on: they name their author and have
 * a number, which tell them apart. In the library, which goes by the specification, they have neither: it drops those of
 * go-ipfs, and go-ipfs takes all that it sends for one and the same message.
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

/** Who published a message, and its number among those, eight bytes, big-endian. */
export interface Origin {
  readonly from: PeerId;
  readonly sequence: Uint8Array;
}

/** What is used of the library's router. */
interface Internals {
  validateReceivedMessage(source: PeerId, message: RPC.Message): Promise<unknown>;
  readonly mcache: { put(id: unknown, message: RPC.Message, isValidated?: boolean): boolean };
}

const SEQUENCE_SIZE = 8;

/** By the data of a message: the library hands on nothing else of it that is its own. */
const origins = new WeakMap<Uint8Array, Origin>();

/** Undefined of a message that names no author. */
export const originOf = ({ data }: { readonly data: Uint8Array }): Origin | undefined => origins.get(data);

/** Has a router that neither signs nor takes signatures name the authors of messages: this node of its own. */
export function nameAuthors(router: GossipSub, self: PeerId, notices: PatchNotices): void {
  const whole = router as GossipSub & Partial<Internals>;
  const { validateReceivedMessage: validate, mcache, publish } = whole;
  const put = mcache?.put;
  const parts = { validateReceivedMessage: validate, "mcache.put": put };
  if (!notices.isApplicable(patch, parts) || validate === undefined || mcache === undefined) return;
  whole.validateReceivedMessage = (source, message) => {
    const origin = originIn(message);
    const { topic, data = new Uint8Array() } = message;
    // What is passed on is the whole message all the same.
    return validate.call(router, source, origin === undefined ? message : { topic, data: marked(data, origin) });
  };
  // They begin with the time, so that they grow across restarts, too.
  let last = BigInt(Date.now()) * 1_000_000n;
  router.publish = (topic, data = new Uint8Array()) => {
    const sequence = Buffer.alloc(SEQUENCE_SIZE);
    sequence.writeBigUInt64BE(++last);
    return publish.call(router, topic, marked(data, { from: self, sequence }));
  };
  // Publishing puts a message in here before it is sent.
  mcache.put = (id, message, isValidated) => {
    const origin = message.from === undefined && message.data ? origins.get(message.data) : undefined;
    if (origin !== undefined) {
      message.from = origin.from.toMultihash().bytes;
      message.seqno = origin.sequence;
    }
    return put?.call(mcache, id, message, isValidated) ?? false;
  };
}

/** The data as an object of its own, which is known by its origin. */
function marked(data: Uint8Array, origin: Origin): Uint8Array {
  const own = data.subarray();
  origins.set(own, origin);
  return own;
}

/** Undefined also of one that is malformed, which the library deals with. */
function originIn({ from, seqno, signature }: RPC.Message): Origin | undefined {
  if (from === undefined || seqno?.length !== SEQUENCE_SIZE || signature !== undefined) return undefined;
  try {
    return { from: peerIdFromMultihash(decodeMultihash(from)), sequence: seqno };
  } catch {
    return undefined;
  }
}
