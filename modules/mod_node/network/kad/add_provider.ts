/**
 * Encodes and decodes the message `ADD_PROVIDER` of the DHT specification, with which a peer
 * announces that it has a block.
 */
import type { PeerId } from "../../formats/peer_id.ts";
import { FieldReader, fieldLength, tagOf, wireBytes, wireVarint, writeField } from "../../formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";

export interface Provider {
  readonly id: PeerId;
  readonly multiaddrs: readonly Multiaddr[];
}

const ADD_PROVIDER = 2;
/** Fields of `Message`, and of the peers in it. */
const TYPE_FIELD = 1;
const KEY_FIELD = 2;
const PROVIDERS_FIELD = 9;
const ID_FIELD = 1;
const ADDRESS_FIELD = 2;

/** Encodes the field with a provider and its addresses, which is the same in each message. */
export function encodeProvider({ id, multiaddrs }: Provider): Uint8Array {
  const parts = [
    [ID_FIELD, id.toMultihash().bytes] as const,
    ...multiaddrs.map((each) => [ADDRESS_FIELD, each.bytes] as const),
  ];
  const peer = new Uint8Array(parts.reduce((sum, [, { length }]) => sum + fieldLength(length), 0));
  let at = 0;
  for (const [field, bytes] of parts) at = writeField(peer, at, tagOf(field, wireBytes), bytes);
  const field = new Uint8Array(fieldLength(peer.length));
  writeField(field, 0, tagOf(PROVIDERS_FIELD, wireBytes), peer);
  return field;
}

/** Encodes a message with its length prefix. @param provider the result of `encodeProvider` */
export function encodeAddProvider(provider: Uint8Array, multihash: Uint8Array): Uint8Array {
  const length = 2 + fieldLength(multihash.length) + provider.length;
  const bytes = new Uint8Array(varintLength(length) + length);
  let at = writeVarint(bytes, 0, length);
  bytes[at++] = tagOf(TYPE_FIELD, wireVarint);
  bytes[at++] = ADD_PROVIDER;
  at = writeField(bytes, at, tagOf(KEY_FIELD, wireBytes), multihash);
  bytes.set(provider, at);
  return bytes;
}

/** A message with one provider; its parts are views of the message's bytes. */
export interface AddProvider {
  readonly key: Uint8Array;
  /** The provider and its addresses, undecoded. */
  readonly provider: Uint8Array;
}

/**
 * Returns undefined for any other message, and for one with several providers. @throws NodeError
 * for malformed bytes
 */
export function decodeAddProvider(message: Uint8Array): AddProvider | undefined {
  const reader = new FieldReader(message);
  let [type, key, provider]: [number, Uint8Array?, Uint8Array?] = [0];
  while (reader.next()) {
    if (reader.field === TYPE_FIELD) type = reader.number;
    else if (reader.field === KEY_FIELD) key = reader.bytes;
    else if (reader.field !== PROVIDERS_FIELD || provider !== undefined) return undefined;
    else provider = reader.bytes;
  }
  return type === ADD_PROVIDER && key !== undefined && provider !== undefined ? { key, provider } : undefined;
}

/**
 * Whether an undecoded provider is this peer and has an address. @throws NodeError for malformed
 * bytes
 */
export function isProvider(provider: Uint8Array, id: Uint8Array): boolean {
  const reader = new FieldReader(provider);
  let isPeer = false;
  let hasAddress = false;
  while (reader.next()) {
    if (reader.field === ID_FIELD) isPeer = Buffer.compare(reader.bytes, id) === 0;
    else if (reader.field === ADDRESS_FIELD) hasAddress = true;
  }
  return isPeer && hasAddress;
}
