/** Keys of IPNS records in the DHT, in pubsub and in the metadata store. */

import { peerIdFromMultihash } from "@libp2p/peer-id";
import { base32upper } from "multiformats/bases/base32";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { identity } from "../../formats/cid/hashes.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import { failure } from "../../util/errors.ts";

/** Namespace of records in the DHT. */
export const RECORD_PREFIX = "/ipns/";
/** Namespace of public keys in the DHT. */
const PUBLIC_KEY_PREFIX = "/pk/";

const key = (prefix: string, id: PeerId): Uint8Array => Buffer.concat([Buffer.from(prefix), id.toMultihash().bytes]);

/** Returns the key of a record in the DHT and in the fetch protocol. */
export const recordKey = (id: PeerId): Uint8Array => key(RECORD_PREFIX, id);

/** Returns the DHT key of a public key, for names that do not contain theirs. */
export const publicKeyKey = (id: PeerId): Uint8Array => key(PUBLIC_KEY_PREFIX, id);

/** Whether a name contains its public key; short keys are not hashed. */
export const inlinesPublicKey = (id: PeerId): boolean => id.toMultihash().code === identity.code;

/** Returns the pubsub topic of a name's records. */
export const recordTopic = (id: PeerId): string => `/record/${Buffer.from(recordKey(id)).toString("base64url")}`;

/**
 * Prefix in the metadata store of the last published records, which are stored by the base32 of the
 * name's multihash.
 */
export const PUBLISHED_PREFIX = "ipns/";

/** Returns the metadata key of the record that this node last published. */
export const publishedKey = (id: PeerId): string => PUBLISHED_PREFIX + base32upper.baseEncode(id.toMultihash().bytes);

/** Returns the metadata key of the last record that was signed for a name and then refused. */
export const refusedKey = (id: PeerId): string => `ipns-refused/${base32upper.baseEncode(id.toMultihash().bytes)}`;

/** Returns the name that a metadata key belongs to. */
export const nameOfPublished = (key: string): PeerId =>
  peerIdFromMultihash(decodeMultihash(base32upper.baseDecode(key.slice(PUBLISHED_PREFIX.length))));

/**
 * Returns the name that a record's DHT key belongs to. @throws NodeError for another kind of key
 */
export function nameOfRecord(bytes: Uint8Array): PeerId {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (text.subarray(0, RECORD_PREFIX.length).toString() !== RECORD_PREFIX)
    throw failure("RECORD_INVALID", { reason: "invalid record keytype" });
  return peerIdFromMultihash(decodeMultihash(bytes.subarray(RECORD_PREFIX.length)));
}
