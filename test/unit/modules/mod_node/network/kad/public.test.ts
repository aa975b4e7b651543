import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { add, known, outcome, type RoutingNode, soon, startNode, until, untilProvided } from "./support.ts";

/**
 * Nodes that announce public addresses. They are connected already, so these addresses are never
 * dialled.
 */
let a: RoutingNode;
let b: RoutingNode;
const addresses = { a: "/ip4/8.8.8.8/tcp/4001", b: "/ip4/8.8.4.4/tcp/4001" };
const filters = { "Swarm.AddrFilters": ["/ip4/8.0.0.0/ipcidr/8"] };
const everywhere = "/ipfs/kad/1.0.0";
const wan = ({ routing }: RoutingNode) => routing.dht?.wan.size ?? 0;

before(async () => {
  a = await startNode({ config: { ...filters, "Addresses.Announce": [addresses.a] } });
  b = await startNode({ config: { ...filters, "Addresses.Announce": [addresses.b] } });
  await until(() => [a, b].every(({ network }) => network.libp2p.getProtocols().includes(everywhere)));
  await a.network.swarm.connect(b.id, b.network.swarm.listenAddresses());
  await until(() => wan(a) > 0 && wan(b) > 0);
});
after(() => Promise.all([a, b].map((node) => node?.[Symbol.asyncDispose]())));

test("with a public address a node is a server of the public DHT, and keeps private addresses out of it", async () => {
  const cid = await add(a, "public");
  await untilProvided(b, cid, a);
  const [found] = await Array.fromAsync(b.routing.findProviderPeers(cid, soon()));
  assert.ok(found?.addresses.map(String).includes(addresses.a));
  const reported = await outcome(b.routing.closestPeers(a.id.toMultihash().bytes, soon()));
  assert.deepEqual(
    reported.events.filter(({ type }) => type === 2).map(({ id }) => String(id)),
    [a.id.toString()],
  );
});

test("without a public address a node is a server of the local DHT alone", async () => {
  await using c = await startNode({ config: filters });
  assert.ok(!c.network.libp2p.getProtocols().includes(everywhere));
  await c.network.swarm.connect(a.id, a.network.swarm.listenAddresses());
  await until(() => wan(c) === 1 && known(a) === 1);
  assert.equal(wan(a), 1);
  assert.deepEqual(
    a.routing.dht?.wan.buckets().flatMap(({ peers }) => peers.map(({ id }) => id.toString())),
    [b.id.toString()],
  );
  const { events } = await outcome(c.routing.closestPeers(b.id.toMultihash().bytes, soon()));
  assert.ok(events.some(({ responses }) => responses?.some(({ id }) => id.equals(b.id))));
});
