/** Tests that a value that is read and written can be read again, and is then written the same. */
import assert from "node:assert/strict";
import * as dagCbor from "@ipld/dag-cbor";
import * as dagJson from "@ipld/dag-json";
import type { CID } from "multiformats/cid";
import { parsePath } from "#node/content/resolver/path.ts";
import { castCid, cidText, parseCid } from "#node/formats/cid/text.ts";
import { decodeCbor, type Value } from "#node/formats/dag_cbor/value.ts";
import { encodeCbor } from "#node/formats/dag_cbor/write.ts";
import { readDagJson } from "#node/formats/dag_json/read.ts";
import { writeDagJson } from "#node/formats/dag_json/write.ts";
import { decodePb, encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { decodeUnixfs, encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { encodeMessage } from "#node/network/bitswap/encode_message.ts";
import { decodeMessage, type Message } from "#node/network/bitswap/message.ts";
import { decodeRecord, encodeRecord, type IpnsRecord } from "#node/network/ipns_record/record.ts";
import { addressText, parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { parseTree, printTree } from "#node/storage/repo/json_tree.ts";
import { formatDuration, parseDuration } from "#node/util/go/duration.ts";
import { type InputTarget, KIB, type Make, target } from "#test/endurance/fuzz/delay/target.ts";
import { bitswap, records } from "#test/endurance/fuzz/delay/targets/messages.ts";
import { cbor, json, pb } from "#test/endurance/fuzz/delay/targets/nodes.ts";
import { addresses, bytesOfCid, encoded, path } from "#test/endurance/fuzz/delay/targets/texts.ts";
import { record } from "#test/endurance/fuzz/node/material.ts";
import { Random } from "#test/endurance/fuzz/random.ts";

/**
 * Reads, writes, reads and writes. An error of the first reading means that the input is rejected.
 */
function thereAndBack<I extends string | Uint8Array, V>(read: (input: I) => V, write: (value: V) => I) {
  return (input: I): void => {
    const written = write(read(input));
    assert.deepEqual(again(read, write, written), written);
  };
}

function again<I extends string | Uint8Array, V, W>(read: (input: I) => V, write: (value: V) => W, written: I): W {
  try {
    return write(read(written));
  } catch (error) {
    const shown = typeof written === "string" ? JSON.stringify(written) : Buffer.from(written).toString("hex");
    return assert.fail(`the written text cannot be read again: ${shown.slice(0, 2000)}: ${error}`);
  }
}

/** The sizes select values, too. */
const values =
  (encode: (value: unknown) => Uint8Array): Make<Uint8Array> =>
  (size) =>
    encode(record(new Random(size)));

const cids: Readonly<Record<string, Make<string>>> = {
  ...encoded,
  v0: () => "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn",
  v1: () => "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354",
};
const peers: Readonly<Record<string, Make<string>>> = {
  ...cids,
  ed25519: () => "12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8",
};
const configurations: Readonly<Record<string, Make<string>>> = Object.fromEntries(
  Object.entries(json).map(([shape, make]) => [shape, (size) => Buffer.from(make(size)).toString("latin1")]),
);
const names: Readonly<Record<string, Make<string>>> = {
  ...path,
  names: (size) => `/ipns/${"a".repeat(size % 70)}/b/../c`,
  escapes: (size) => `/ipfs/${cids.v1?.(0)}/${"%2f%zz".repeat(size % 9)}`,
};
const contentPaths: Readonly<Record<string, Make<string>>> = {
  ...addresses,
  relayed: () => `/ip6/::1/tcp/4001/ws/p2p/${peers.ed25519?.(0)}/p2p-circuit/dns4/a.b/udp/1/quic-v1`,
};

/**
 * Without the length in front. The sender counts the bytes that wait to be sent, and no message is
 * forwarded.
 */
function bitswapBytes(message: Message): Uint8Array {
  const bytes = Buffer.concat(encodeMessage({ ...message, pendingBytes: 0 }));
  return new Uint8Array(bytes.subarray(bytes.findIndex((byte) => byte < 0x80) + 1));
}

/** Precise to a nanosecond, as far as a number of milliseconds can represent it. */
function durationTrip(text: string): void {
  const value = parseDuration(text);
  const written = formatDuration(value);
  const isNear = Math.abs(again(parseDuration, (read) => read, written) - value) <= 2e-6 + Math.abs(value) * 1e-15;
  assert.ok(isNear, `${value} ms is written ${written}`);
}

export const trips: readonly InputTarget[] = [
  target(
    "dag-cbor, there and back",
    KIB,
    { ...cbor, values: values(dagCbor.encode) },
    thereAndBack<Uint8Array, Value>(decodeCbor, encodeCbor),
  ),
  target(
    "dag-json, there and back",
    KIB,
    { ...json, values: values(dagJson.encode) },
    thereAndBack(readDagJson, writeDagJson),
  ),
  target("dag-pb, there and back", KIB, pb, thereAndBack(decodePb, encodePb)),
  target("UnixFS, there and back", KIB, pb, (block) => {
    const { data } = decodePb(block);
    if (data !== undefined) thereAndBack(decodeUnixfs, encodeUnixfs)(data);
  }),
  target("CIDs as text, there and back", KIB, cids, thereAndBack(parseCid, cidText)),
  target(
    "CIDs as bytes, there and back",
    KIB,
    { identity: bytesOfCid, v0: () => parseCid(cids.v0?.(0) as string).bytes },
    thereAndBack<Uint8Array, CID>(castCid, ({ bytes }) => bytes),
  ),
  target("peer ids, there and back", KIB, peers, thereAndBack(parsePeerId, String)),
  target(
    "paths, there and back",
    KIB,
    names,
    thereAndBack(parsePath, ({ text }) => text),
  ),
  target("addresses, there and back", KIB, contentPaths, thereAndBack(parseMultiaddr, addressText)),
  target(
    "IPNS records, there and back",
    KIB,
    records,
    thereAndBack<Uint8Array, IpnsRecord>(decodeRecord, encodeRecord),
  ),
  target(
    "bitswap messages, there and back",
    KIB,
    bitswap,
    thereAndBack<Uint8Array, Message>(decodeMessage, bitswapBytes),
  ),
  target(
    "durations, there and back",
    KIB,
    {
      fraction: (size) => `${size}.${size}s`,
      parts: (size) => `-${size}h${size}m${size}ms${size}us${size}ns`,
      long: (size) => `${"1".repeat(size % 20)}h`,
    },
    durationTrip,
  ),
  target("configurations, there and back", KIB, configurations, thereAndBack(parseTree, printTree)),
];
