/** Messages of peers: bitswap, IPNS records, pubsub, and ids and addresses in messages of all protocols. */
import { RPC } from "@libp2p/gossipsub/message";
import { peerIdFromMultihash } from "@libp2p/peer-id";
import { multiaddr } from "@multiformats/multiaddr";
import { create } from "multiformats/hashes/digest";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { copyCid, keyOfCid } from "#node/network/bitswap/keys.ts";
import { decodeMessage, MAX_MESSAGE_SIZE } from "#node/network/bitswap/message.ts";
import { checkRecord } from "#node/network/ipns_record/check.ts";
import { encodeRecord, MAX_RECORD_SIZE } from "#node/network/ipns_record/record.ts";
import { MAX_RPC_SIZE } from "#node/network/pubsub/limits.ts";
import { lengthPrefixed, splitRpc } from "#node/network/pubsub/message.ts";
import { type Make, MIB, type Target, target } from "../target.ts";

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
const many = (size: number, piece: Uint8Array): Uint8Array => filled(size, ...piece);

const bitswap: Readonly<Record<string, Make<Uint8Array>>> = {
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

const records: Readonly<Record<string, Make<Uint8Array>>> = {
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
};

const multihash =
  (code: number): Make<Uint8Array> =>
  (size) =>
    create(code, filled(size, 0xa5)).digest;

export const messageTargets: readonly Target[] = [
  target("bitswap messages", MAX_MESSAGE_SIZE, bitswap, readBitswap),
  target("IPNS records", MAX_RECORD_SIZE, records, (bytes) => checkRecord(name, bytes)),
  target("pubsub messages", MAX_RPC_SIZE, rpcs, (bytes) => [RPC.decode(bytes), splitRpc(lengthPrefixed(bytes))]),
  target("peer ids in messages", 4 * MIB, { sha256: multihash(0x12), identity: multihash(0) }, (digest) => {
    for (const code of [0x12, 0]) {
      try {
        String(peerIdFromMultihash(create(code, digest)));
      } catch {}
    }
  }),
  target(
    "addresses in messages",
    4 * MIB,
    { "a peer id": multihash(0x12), many: (size) => filled(size, 4, 127, 0, 0, 1, 6, 0, 1) },
    (bytes) => {
      const address = bytes[0] === 4 ? bytes : Buffer.concat([Buffer.of(0xa5, 3), Buffer.from(lengthPrefixed(bytes))]);
      String(multiaddr(new Uint8Array(address)));
    },
  ),
];
