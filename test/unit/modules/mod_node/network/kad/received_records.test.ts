import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { decodeAddProvider, encodeAddProvider, encodeProvider } from "#node/network/kad/add_provider.ts";
import { storeProviderRecords } from "#node/network/kad/received_records.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { field } from "#test/support/protobuf.ts";

const sender = parsePeerId("12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5");
const other = parsePeerId("12D3KooWEfnzCZ79qLke7bqPoJvXGMBTfwMb5gZfcdYGxmj1TFtu");

const multihash = (at: number) => Buffer.concat([Buffer.of(0x12, 0x20), createHash("sha256").update(`${at}`).digest()]);
const provider = (id = sender, ...addresses: string[]) =>
  encodeProvider({ id, multiaddrs: addresses.map(parseMultiaddr) });
const here = provider(sender, "/ip4/192.0.2.1/tcp/4001", "/ip4/192.0.2.1/udp/4001/quic-v1");
const elsewhere = provider(sender, "/ip4/192.0.2.2/tcp/4001");
/** Removes the length prefix, which has one or two bytes. */
const message = (made: Uint8Array, key: Uint8Array) => {
  const bytes = encodeAddProvider(made, key);
  return bytes.subarray((bytes[0] as number) < 0x80 ? 1 : 2);
};

/** Returns the numbers of the messages that are left to the library, and the stored records. */
function taken(messages: readonly Uint8Array[]) {
  const stored: string[] = [];
  const left = storeProviderRecords(messages, sender, {
    addProvider: (peer, bytes) => void stored.push(`${peer} ${Buffer.from(bytes).toString("hex")}`),
  });
  return { left: left.map((each) => messages.indexOf(each)), stored };
}

const storedOf = (...numbers: number[]) => numbers.map((at) => `${sender} ${multihash(at).toString("hex")}`);

test("records with the same addresses are stored, and the last of them is left to the library with the addresses", () => {
  const made = [here, here, here, elsewhere, elsewhere].map((each, at) => message(each, multihash(at)));
  assert.deepEqual(taken(made), { left: [2, 4], stored: storedOf(0, 1, 3) });
  assert.deepEqual(taken(made.slice(0, 1)), { left: [0], stored: [] });
});

test("records about other peers, records without an address, and other messages are left to the library", () => {
  for (const odd of [provider(other, "/ip4/192.0.2.1/tcp/4001"), provider(sender), field(9)]) {
    const made = [0, 1, 2].map((at) => message(odd, multihash(at)));
    assert.deepEqual(taken(made), { left: [0, 1, 2], stored: [] });
  }
  const short = [Buffer.of(), Buffer.of(0x12, 0x20, 1), Buffer.from("no multihash")].map((key) => message(here, key));
  assert.deepEqual(taken([...short, message(here, multihash(3))]), { left: [0, 1, 2, 3], stored: [] });
  const findNode = () => Buffer.concat([Buffer.of(8, 4), field(2, multihash(0))]);
  assert.deepEqual(taken([findNode(), findNode()]), { left: [0, 1], stored: [] });
  const ofTwo = () => Buffer.concat([message(here, multihash(0)), here]);
  assert.deepEqual(taken([ofTwo(), ofTwo()]), { left: [0, 1], stored: [] });
});

test("a record is read as it was written", () => {
  const read = decodeAddProvider(message(here, multihash(7)));
  assert.deepEqual(Buffer.from(read?.key ?? []), multihash(7));
  assert.deepEqual(Buffer.from(field(9, Buffer.from(read?.provider ?? []))), Buffer.from(here));
  assert.throws(() => decodeAddProvider(message(here, multihash(7)).subarray(0, -1)), /EOF/);
});
