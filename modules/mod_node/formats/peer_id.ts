/** Parses and prints all forms of peer ids, which are IPNS names, too. */
import { peerIdFromMultihash } from "@libp2p/peer-id";
import { base58btc } from "multiformats/bases/base58";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { failure, NodeError } from "../util/errors.ts";
import { codecName, libp2pKey } from "./cid/codecs.ts";
import { multibaseNamed } from "./cid/multibase.ts";
import { parseCid } from "./cid/text.ts";

export type PeerId = ReturnType<typeof peerIdFromMultihash>;

/** Parses a peer id in any form: base58 of the multihash, or a CID. @throws NodeError */
export function parsePeerId(text: string): PeerId {
  try {
    if (/^(?:Qm|1)/.test(text)) return peerIdFromMultihash(decodeMultihash(base58btc.decode(`z${text}`)));
    const cid = parseCid(text);
    if (cid.code !== libp2pKey) throw failure("CID_NOT_A_PEER_ID", { codec: codecName(cid.code) });
    return peerIdFromMultihash(cid.multihash);
  } catch (error) {
    // The message of this failure has no prefix.
    if (NodeError.is(error) && error.code === "CID_NOT_A_PEER_ID") throw error;
    const { message, details } = error as NodeError;
    throw failure("INVALID_PEER_ID", { reason: message, later: details?.later ?? message }, error);
  }
}

/**
 * Returns a function that prints peer ids and names as `b58mh` (or `v0`), or as a CID in the
 * multibase `base`.
 *
 * @throws NodeError for an unknown base
 */
export function peerIdEncoder(base: string): (id: PeerId) => string {
  if (base === "") throw failure("MULTIBASE_INVALID", { reason: "Empty multibase encoding" });
  if (base === "b58mh" || base === "v0") return String;
  const { encoder } = multibaseNamed(base);
  return (id) => id.toCID().toString(encoder);
}
