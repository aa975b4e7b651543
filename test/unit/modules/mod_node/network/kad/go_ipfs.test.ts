import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { recordKey } from "#node/network/ipns_record/keys.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import { parseMultiaddr, splitPeer } from "#node/network/swarm/multiaddr.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import { GoIpfs, withoutGoIpfs } from "#test/support/go_ipfs.ts";
import { add, known, outcome, providersIn, type RoutingNode, soon, startNode, until } from "./support.ts";

interface Event {
  readonly Extra: string;
  readonly ID: string;
  readonly Responses: readonly { readonly ID: string; readonly Addrs: readonly string[] }[] | null;
  readonly Type: number;
}

const skip = withoutGoIpfs;

async function meet(go: GoIpfs, ...nodes: readonly RoutingNode[]): Promise<void> {
  const { id, address } = splitPeer(parseMultiaddr(go.address));
  for (const node of nodes) await node.network.swarm.connect(id, address === undefined ? [] : [address]);
  await until(async () => {
    const [lan] = await go.call<{ Buckets: readonly { Peers: readonly unknown[] | null }[] }>("stats/dht?arg=lan");
    const theirs = (lan?.Buckets ?? []).flatMap(({ Peers }) => Peers ?? []).length;
    return theirs >= nodes.length && nodes.every((node) => known(node) > 0);
  });
}

const body = (bytes: Uint8Array) => {
  const form = new FormData();
  form.append("file", new Blob([Uint8Array.from(bytes)]));
  return form;
};

test("go-ipfs finds blocks that this node provides, and vice versa", { skip }, async () => {
  await using go = await GoIpfs.start();
  await using a = await startNode();
  await using b = await startNode();
  await meet(go, a, b);
  const cid = await add(a, "announced to go-ipfs");
  await until(async () => {
    const events = await go.call<Event>(`dht/findprovs?arg=${cid}&num-providers=1`);
    return events.some(({ Type, Responses }) => Type === 4 && Responses?.[0]?.ID === a.id.toString());
  });
  const [added] = await go.call<{ Hash: string }>("add", body(Buffer.from("announced by go-ipfs")));
  const theirs = CID.parse(added?.Hash ?? "");
  await go.call(`dht/provide?arg=${theirs}`);
  await until(async () => {
    const found = await outcome(b.routing.findProviders(theirs, { count: 1, signal: soon() }));
    return providersIn(found.events).includes(go.id);
  });
});

test("peers are found through go-ipfs, and by it", { skip }, async () => {
  await using go = await GoIpfs.start();
  await using a = await startNode();
  await using b = await startNode();
  await meet(go, a, b);
  await a.network.libp2p.hangUp(b.id);
  const addresses = await a.routing.addresses(b.id, soon());
  assert.deepEqual(addresses.map(String), b.network.swarm.listenAddresses().map(String));
  const [found] = await go.call<Event>(`dht/findpeer?arg=${b.id}`);
  assert.deepEqual(found?.Responses?.[0]?.Addrs, b.network.swarm.listenAddresses().map(String));
  const { events } = await outcome(a.routing.closestPeers(parsePeerId(go.id).toMultihash().bytes, soon()));
  assert.ok(events.some(({ type, id }) => type === 2 && String(id) === go.id));
});

test("connecting to an unknown peer fails with the same text", { skip }, async () => {
  await using go = await GoIpfs.start();
  await using a = await startNode();
  const nobody = parsePeerId("12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5");
  const theirs = () =>
    go.call(`swarm/connect?arg=/p2p/${nobody}`).catch((error: Error) => /failure: (.*?)"/.exec(error.message)?.[1]);
  const ours = () => a.network.swarm.connect(nobody).catch((error: Error) => error.message);
  assert.deepEqual([await ours(), await theirs()], Array(2).fill("failed to find any peer in table"));
  await meet(go, a);
  assert.deepEqual([await ours(), await theirs()], Array(2).fill("routing: not found"));
});

test("records go both ways", { skip }, async () => {
  await using go = await GoIpfs.start();
  await using a = await startNode();
  await meet(go, a);
  const key = await generateKey({ type: "ed25519" });
  const validity = formatTimestamp(timestampAfter(3_600_000));
  const record = await signRecord(key, { value: Buffer.from("/ipfs/x"), validity, sequence: 1n, ttl: 0n });
  const put = await outcome(a.routing.put(recordKey(key.id), record, soon()));
  assert.deepEqual(
    put.events.filter(({ type }) => type === 5).map(({ id }) => String(id)),
    [go.id],
  );
  const got = (await go.call<Event>(`dht/get?arg=/ipns/${key.id}`)).find(({ Type }) => Type === 5);
  assert.deepEqual(Buffer.from(got?.Extra ?? "", "base64"), Buffer.from(record));
  const next = await signRecord(key, { value: Buffer.from("/ipfs/y"), validity, sequence: 2n, ttl: 0n });
  await go.call(`dht/put?arg=/ipns/${key.id}`, body(next));
  const best = await outcome(a.routing.get(recordKey(key.id), soon()));
  assert.deepEqual(Buffer.from(best.events.at(-1)?.value ?? []), Buffer.from(next));
  await go.call("name/publish?arg=/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn&resolve=false");
  const name = await outcome(a.routing.get(recordKey(parsePeerId(go.id)), soon()));
  assert.equal(name.failure, undefined);
});
