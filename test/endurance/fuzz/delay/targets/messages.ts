/**
 * Messages of peers: bitswap, IPNS records, pubsub, and the ids and addresses in messages of all
 * protocols.
 */
import { RPC } from "@libp2p/gossipsub/message";
import { peerIdFromMultihash } from "@libp2p/peer-id";
import { multiaddr } from "@multiformats/multiaddr";
import { create, decode as decodeMultihash } from "multiformats/hashes/digest";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { FieldReader } from "#node/formats/protobuf/fields.ts";
import { copyCid, keyOfCid } from "#node/network/bitswap/keys.ts";
import { decodeMessage, MAX_MESSAGE_SIZE } from "#node/network/bitswap/message.ts";
import { checkRecord } from "#node/network/ipns_record/check.ts";
import { encodeRecord, MAX_RECORD_SIZE } from "#node/network/ipns_record/record.ts";
import { decodeAddProvider, isProvider } from "#node/network/kad/add_provider.ts";
import { boundedMessage, MAX_MESSAGE_SIZE as MAX_MESSAGE_SIZE_OF_KAD } from "#node/network/kad/message_bounds.ts";
import { MAX_RPC_SIZE } from "#node/network/pubsub/limits.ts";
import { lengthPrefixed, requireBounded as requireBoundedRpc, splitRpc } from "#node/network/pubsub/message.ts";
import { type InputTarget, KIB, type Make, MIB, target } from "../target.ts";

const filled = (size: number, ...pattern: number[]): Uint8Array =>
  Uint8Array.from(
    { length: Math.floor(size / pattern.length) * pattern.length },
    (_, at) => pattern[at % pattern.length] as number,
  );

function field(number: number, content: Uint8Array): Uint8Array {
  return new Uint8Array(Buffer.concat([Buffer.of(number * 8 + 2), Buffer.from(lengthPrefixed(content))]));
}

const cid = Uint8Array.from([0x12, 0x20, ...new Uint8Array(32)]);
const entry = field(1, field(1, cid));
function many(size: number, piece: Uint8Array): Uint8Array {
  const whole = new Uint8Array(Math.max(1, Math.floor(size / piece.length)) * piece.length);
  for (let at = 0; at < whole.length; at += piece.length) whole.set(piece, at);
  return whole;
}

export const bitswap: Readonly<Record<string, Make<Uint8Array>>> = {
  wants: (size) => field(1, many(size, entry)),
  wantlists: (size) => many(size, field(1, entry)),
  "empty wants": (size) => field(1, filled(size, 0x0a, 0)),
  blocks: (size) => filled(size, 0x12, 0),
  payloads: (size) => filled(size, 0x1a, 0),
  presences: (size) => filled(size, 0x22, 0),
  numbers: (size) => filled(size, 0x28, 0),
  "long numbers": (size) => filled(size, 0x28, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1),
  groups: (size) => filled(size, 0x3b),
  "a long CID": (size) => field(1, field(1, field(1, new Uint8Array(size)))),
  "fields of a want": (size) => field(1, field(1, filled(size, 0x10, 0))),
};

function readBitswap(bytes: Uint8Array): void {
  const { entries, presences } = decodeMessage(bytes);
  for (const { cid } of [...entries, ...presences]) {
    keyOfCid(cid);
    copyCid(cid);
  }
}

const name = parsePeerId("12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8");
const record = (change: object): Uint8Array =>
  encodeRecord({
    value: new Uint8Array(),
    validity: "",
    sequence: 0n,
    ttl: 0n,
    validityType: 0,
    signatureV1: new Uint8Array(),
    signatureV2: new Uint8Array(),
    data: new Uint8Array(),
    publicKey: new Uint8Array(),
    ...change,
  });

export const records: Readonly<Record<string, Make<Uint8Array>>> = {
  value: (size) => record({ value: new Uint8Array(size) }),
  validity: (size) => record({ validity: "1".repeat(size) }),
  data: (size) => record({ data: filled(size, 0x81), signatureV2: new Uint8Array(64) }),
  key: (size) => record({ publicKey: filled(size, 0x08, 0) }),
  fields: (size) => filled(size, 0x50, 0),
};

const rpcs: Readonly<Record<string, Make<Uint8Array>>> = {
  subscriptions: (size) => filled(size, 0x0a, 0),
  topics: (size) => many(size, field(1, field(2, Uint8Array.of(0x61)))),
  messages: (size) => filled(size, 0x12, 0),
  "a long topic": (size) => field(1, field(2, filled(size, 0xff))),
  control: (size) => field(3, filled(size, 0x0a, 0)),
  "ids of messages": (size) => field(3, field(1, filled(size, 0x12, 0))),
  "peers of a prune": (size) => field(3, field(4, filled(size, 0x12, 0))),
  "lists of ids": (size) => field(3, many(size, field(1, filled(10_000, 0x12, 0)))),
  authors: (size) => field(2, filled(size, 0x0a, 0)),
  "as many fields as may be": (size) => field(3, field(1, filled(Math.min(size, 120_000), 0x12, 0))),
};

/** Reads like the router: its own limits apply in addition. */
function readRpc(bytes: Uint8Array): void {
  requireBoundedRpc(bytes);
  RPC.decode(bytes);
}

const peer = (size: number, addresses: Uint8Array): Uint8Array =>
  many(size, field(8, Buffer.concat([field(1, cid.subarray(0, 34)), addresses])));
const address = Uint8Array.of(4, 127, 0, 0, 1, 6, 0, 1);

/** Messages of the DHT. */
const kad: Readonly<Record<string, Make<Uint8Array>>> = {
  "empty peers": (size) => filled(size, 0x42, 0),
  "empty addresses": (size) => field(8, filled(size, 0x12, 0)),
  "peers with empty addresses": (size) => many(size, field(9, filled(256, 0x12, 0))),
  "peers with an address": (size) => peer(Math.min(size, 900_000), field(2, address)),
  "peers with addresses": (size) => peer(Math.min(size, 220_000), many(400, field(2, address))),
  "a long address": (size) => peer(1, field(2, many(size, address))),
  "an address as long as may be": (size) => peer(1, field(2, many(Math.min(size, 190_000), address))),
  "a key in pieces": (size) => filled(size, 0x52, 0),
  "a record in pieces": (size) => field(3, filled(size, 0x0a, 0)),
  "a provider of many addresses": (size) =>
    Buffer.concat([Uint8Array.of(8, 2), field(2, cid), field(9, filled(Math.max(0, size - 128), 0x12, 0))]),
};

/** Reads like the library once it has the bytes, without its own objects. */
function readKad(bytes: Uint8Array): void {
  const record = decodeAddProvider(bytes);
  if (record !== undefined) isProvider(record.provider, cid);
  const reader = new FieldReader(boundedMessage(bytes));
  while (reader.next()) if (reader.field === 8 || reader.field === 9) readPeer(reader.bytes);
}

function readPeer(bytes: Uint8Array): void {
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === 1 && reader.bytes.length > 0) peerIdFromMultihash(decodeMultihash(reader.bytes));
    else if (reader.field === 2) multiaddr(reader.bytes);
  }
}

/** Messages of this node to a peer that requests many blocks. */
function ownMessages(size: number): Uint8Array {
  const message = field(2, Buffer.concat([field(1, cid), field(2, cid), field(4, Uint8Array.of(0x61)), field(5, cid)]));
  return lengthPrefixed(many(size, message));
}

const multihash =
  (code: number): Make<Uint8Array> =>
  (size) =>
    create(code, filled(size, 0xa5)).digest;

export const messageTargets: readonly InputTarget[] = [
  target("bitswap messages", MAX_MESSAGE_SIZE, bitswap, readBitswap),
  target("IPNS records", MAX_RECORD_SIZE, records, (bytes) => checkRecord(name, bytes)),
  target("pubsub messages", MAX_RPC_SIZE, rpcs, readRpc),
  target("pubsub messages to be split", MAX_RPC_SIZE, { messages: ownMessages }, splitRpc),
  target("messages of the DHT", MAX_MESSAGE_SIZE_OF_KAD, kad, readKad),
  target("peer ids in messages", MIB, { sha256: multihash(0x12), identity: multihash(0) }, (digest) => {
    for (const code of [0x12, 0]) {
      try {
        String(peerIdFromMultihash(create(code, digest)));
      } catch {}
    }
  }),
  target(
    "addresses in messages",
    160 * KIB,
    { "a peer id": multihash(0x12), many: (size) => filled(size, 4, 127, 0, 0, 1, 6, 0, 1) },
    (bytes) => {
      const address = bytes[0] === 4 ? bytes : Buffer.concat([Buffer.of(0xa5, 3), Buffer.from(lengthPrefixed(bytes))]);
      String(multiaddr(new Uint8Array(address)));
    },
  ),
];
