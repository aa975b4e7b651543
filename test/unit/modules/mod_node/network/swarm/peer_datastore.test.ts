import assert from "node:assert/strict";
import { test } from "node:test";
import { Key } from "interface-datastore";
import { base58btc } from "multiformats/bases/base58";
import { type PeerId, parsePeerId } from "#node/formats/peer_id.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { PeerDatastore } from "#node/network/swarm/peer_datastore.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { connectTo, startPeer } from "./support.ts";

const own = "/peers/own";
const bytes = (text: string) => new TextEncoder().encode(text);
const keysOf = async (book: PeerDatastore) => {
  const keys: string[] = [];
  for await (const key of book.queryKeys({ prefix: "/peers/" })) keys.push(key.toString());
  return keys.sort();
};

test("entries of peers survive a restart, the node's own does not", async () => {
  const metadata = memoryMetadata();
  const book = await PeerDatastore.open(metadata, { own });
  await book.put(new Key("/peers/a"), bytes("1"));
  await book.put(new Key("/peers/a"), bytes("2"));
  await book.put(new Key("/peers/b"), bytes("3"));
  await book.put(new Key(own), bytes("4"));
  await book.put(new Key("/elsewhere/c"), bytes("5"));
  await book.delete(new Key("/peers/b"));
  assert.equal((await metadata.get("peers/peers/a")) === undefined, true);
  await book.close();
  const again = await PeerDatastore.open(metadata, { own });
  assert.deepEqual(await keysOf(again), ["/peers/a"]);
  assert.deepEqual(await again.get(new Key("/peers/a")), bytes("2"));
  assert.equal(await again.has(new Key("/peers/b")), false);
  await assert.rejects(again.get(new Key("/peers/b")), { name: "NotFoundError" });
  await again.delete(new Key("/peers/a"));
  await again.close();
  assert.deepEqual(await keysOf(await PeerDatastore.open(metadata, { own })), []);
});

test("the entries that changed last are stored", async () => {
  const metadata = memoryMetadata();
  const book = await PeerDatastore.open(metadata, { own });
  const most = 4096;
  for (let at = 0; at < most; at++) await book.put(new Key(`/peers/${at}`), bytes("x"));
  await book.put(new Key("/peers/0"), bytes("y"));
  await book.put(new Key("/peers/new"), bytes("x"));
  assert.equal(await book.has(new Key("/peers/0")), true);
  assert.equal(await book.has(new Key("/peers/1")), false);
  await book.close();
  const again = await PeerDatastore.open(metadata, { own });
  assert.equal((await keysOf(again)).length, most);
  assert.equal(await again.has(new Key("/peers/1")), false);
});

test("the entries of this node and of connected peers are never dropped", async () => {
  const staying = new Set(["/peers/near"]);
  const book = await PeerDatastore.open(memoryMetadata(), { own, staying });
  for (const name of [own, "/peers/near", "/peers/far"]) await book.put(new Key(name), bytes("x"));
  for (let at = 0; at < 4096; at++) await book.put(new Key(`/peers/${at}`), bytes("x"));
  const has = (name: string) => book.has(new Key(name));
  assert.deepEqual(await Promise.all([own, "/peers/near", "/peers/far"].map(has)), [true, true, false]);
  staying.delete("/peers/near");
  await book.put(new Key("/peers/new"), bytes("x"));
  assert.equal(await has("/peers/near"), false);
  await book.close();
});

test("a node that knows thousands of peers still knows the protocols of connected ones", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  await using c = await startPeer();
  await connectTo(b, a);
  const multiaddrs = [parseMultiaddr("/ip4/127.0.0.1/tcp/4001")];
  const received = Array.from({ length: 4097 }, (_, at) => madeUp(at));
  await Promise.all(received.map((id) => a.swarm.libp2p.peerStore.merge(id, { multiaddrs })));
  assert.deepEqual(await a.swarm.addresses(madeUp(0)), []);
  assert.ok((await a.swarm.peerInfo(b.swarm.id)).protocols.length > 0);
  await connectTo(c, a);
  assert.ok((await c.swarm.peerInfo(a.swarm.id)).protocols.length > 0);
});

/** An id whose private key is not known. */
function madeUp(at: number): PeerId {
  const multihash = Buffer.alloc(34);
  multihash.writeUInt16BE(0x1220);
  multihash.writeUInt32BE(at + 1, 2);
  return parsePeerId(base58btc.encode(multihash).slice(1));
}

test("nothing is written after closing", async () => {
  const metadata = memoryMetadata();
  const book = await PeerDatastore.open(metadata, { own });
  await book.close();
  await book.put(new Key("/peers/a"), bytes("1"));
  await book.close();
  assert.equal(await metadata.has("peers/peers/a"), false);
});

test("after a restart a known peer is dialled by its id alone", async () => {
  await using b = await startPeer();
  const metadata = memoryMetadata();
  const first = await startPeer({ metadata });
  await connectTo(first, b);
  await first.stop();
  await using second = await startPeer({ metadata });
  assert.deepEqual((await second.swarm.addresses(b.swarm.id)).map(String), b.swarm.listenAddresses().map(String));
  assert.notEqual(second.swarm.id.toString(), first.swarm.id.toString());
  await second.swarm.connect(b.swarm.id);
});
