/** Under which keys others and the node itself keep what belongs to a name (network sections 3.2 and 3.6). */

import { peerIdFromMultihash } from "@libp2p/peer-id";
import { base32upper } from "multiformats/bases/base32";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { identity } from "../../formats/cid/hashes.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import { NodeError } from "../../util/errors.ts";

/** What keys of records begin with. */
export const RECORD_PREFIX = "/ipns/";
const keyed = "/pk/";

const key = (prefix: string, id: PeerId): Uint8Array => Buffer.concat([Buffer.from(prefix), id.toMultihash().bytes]);

/** Of the name's record, in routing tables and over the fetch protocol. */
export const recordKey = (id: PeerId): Uint8Array => key(RECORD_PREFIX, id);

/** Of the public key behind a name that does not tell it. */
export const publicKeyKey = (id: PeerId): Uint8Array => key(keyed, id);

/** The name of a short public key is the key itself. */
export const inlinesPublicKey = (id: PeerId): boolean => id.toMultihash().code === identity.code;

/** Of the messages in which a name's records are published. */
export const recordTopic = (id: PeerId): string => `/record/${Buffer.from(recordKey(id)).toString("base64url")}`;

/** Where the metadata has the records that this node published last: the base32 of the name's multihash follows. */
export const PUBLISHED_PREFIX = "ipns/";

/** Of the record that this node published last, in its metadata. */
export const publishedKey = (id: PeerId): string => PUBLISHED_PREFIX + base32upper.baseEncode(id.toMultihash().bytes);

/** @throws NodeError when the key is not that of a name's record */
export function nameOfRecord(bytes: Uint8Array): PeerId {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (text.subarray(0, RECORD_PREFIX.length).toString() !== RECORD_PREFIX)
    throw new NodeError("invalid record keytype");
  return peerIdFromMultihash(decodeMultihash(bytes.subarray(RECORD_PREFIX.length)));
}
