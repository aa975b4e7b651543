import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { publicKeyKey } from "#node/network/ipns_record/keys.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import {
  add,
  known,
  outcome,
  providersIn,
  type RoutingNode,
  soon,
  startNode,
  startStranger,
  until,
} from "./support.ts";

/** One plain libp2p peer, and two nodes that only know this peer. */
let stranger: Awaited<ReturnType<typeof startStranger>>;
let a: RoutingNode;
let b: RoutingNode;

before(async () => {
  [stranger, a, b] = await Promise.all([startStranger(), startNode(), startNode()]);
  for (const node of [a, b]) await node.network.swarm.connect(stranger.peerId, stranger.getMultiaddrs());
  await until(() => known(a) > 0 && known(b) > 0);
});
after(async () => {
  await Promise.all([a, b].map((node) => node?.[Symbol.asyncDispose]()));
  await stranger?.stop();
});

test("a plain libp2p DHT finds what a node provides", async () => {
  const cid = await add(a, "for strangers");
  const found = new Set<string>();
  // Announcements have no response, so it may still be on its way.
  await until(async () => {
    for await (const event of stranger.services.dht.findProviders(cid, { signal: soon() })) {
      if (event.name === "PROVIDER") for (const { id } of event.providers) found.add(id.toString());
    }
    return found.size > 0;
  });
  assert.deepEqual([...found], [a.id.toString()]);
});

test("a node finds what a plain libp2p DHT provides", async () => {
  const cid = await add(b, "had by a stranger");
  for await (const _ of stranger.services.dht.provide(cid, { signal: soon() }));
  await until(async () => {
    const { events } = await outcome(a.routing.findProviders(cid, { count: 20, signal: soon() }));
    return providersIn(events).includes(stranger.peerId.toString());
  });
});

test("a node is found through a plain libp2p DHT", async () => {
  await a.network.libp2p.hangUp(b.id);
  const addresses = await a.routing.addresses(b.id, soon());
  assert.deepEqual(addresses.map(String), b.network.swarm.listenAddresses().map(String));
});

test("records go both ways", async () => {
  const [ours, theirs] = await Promise.all([generateKey({ type: "ed25519" }), generateKey({ type: "ed25519" })]);
  await a.routing.putQuietly(publicKeyKey(ours.id), ours.publicKey, soon());
  const values: Uint8Array[] = [];
  for await (const event of stranger.services.dht.get(publicKeyKey(ours.id), { signal: soon() })) {
    if (event.name === "VALUE") values.push(event.value);
  }
  assert.deepEqual(
    values.map((value) => Buffer.from(value)),
    [Buffer.from(ours.publicKey)],
  );
  for await (const _ of stranger.services.dht.put(publicKeyKey(theirs.id), theirs.publicKey, { signal: soon() }));
  const got = await outcome(b.routing.get(publicKeyKey(theirs.id), soon()));
  assert.deepEqual(Buffer.from(got.events.at(-1)?.value ?? []), Buffer.from(theirs.publicKey));
});
