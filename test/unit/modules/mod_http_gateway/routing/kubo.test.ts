/**
 * Kubo as a client of the router, and as a router. The tests run if KUBO is set to the path of its
 * program.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixtures } from "#test/contract/gateway/replay.ts";
import { eventually } from "#test/support/eventually.ts";
import { GoIpfs, routedBy, withoutKubo } from "#test/support/go_ipfs.ts";
import { startOnline } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { provided, startRoutingPair } from "./pair.ts";

interface RoutingEvent {
  readonly Type: number;
  readonly Responses: readonly { readonly ID: string; readonly Addrs: readonly string[] }[] | null;
}

const namedBy = (events: readonly RoutingEvent[], type: number) =>
  events.filter(({ Type }) => Type === type).flatMap(({ Responses }) => Responses ?? []);

test("Kubo finds blocks, peers and names with this router only", { skip: withoutKubo }, async () => {
  await using pair = await startRoutingPair();
  await using kubo = await GoIpfs.startKubo((config) => {
    config.Routing = routedBy(pair.url);
  });
  const cid = await provided(pair.other, "who has it?");
  const where = { ID: pair.otherId, Addrs: [pair.address] };
  assert.deepEqual(namedBy(await kubo.call<RoutingEvent>(`routing/findprovs?arg=${cid}`), 4), [where]);
  assert.deepEqual(namedBy(await kubo.call<RoutingEvent>(`routing/findpeer?arg=${pair.otherId}`), 2), [where]);
  assert.deepEqual(await kubo.call(`block/stat?arg=${cid}`), [{ Key: cid, Size: 11 }]);

  const body = fixtures.records.one as string;
  const given = await fetch(`${pair.url}/routing/v1/ipns/${fixtures.keys.one}`, {
    method: "PUT",
    body: Buffer.from(body, "base64"),
    headers: { "content-type": "application/vnd.ipfs.ipns-record" },
  });
  assert.equal(given.status, 200);
  const [resolved] = await kubo.call<{ Path: string }>(`name/resolve?arg=${fixtures.keys.one}`);
  assert.equal(resolved?.Path, `/ipfs/${fixtures.cids.site}`);

  await kubo.call(`name/publish?arg=/ipfs/${cid}`);
  const published = await pair.other.value<{ Path: string }>(`name/resolve?arg=${kubo.id}`);
  assert.equal(published.Path, `/ipfs/${cid}`);
});

test("a node finds blocks, peers and names with a Kubo as its only router", { skip: withoutKubo }, async () => {
  await using pair = await startRoutingPair();
  await using kubo = await GoIpfs.startKubo((config) => {
    config.Routing = { Type: "dhtserver", LoopbackAddressesOnLanDHT: true };
  });
  const { other, otherId, address } = pair;
  await kubo.call(`swarm/connect?arg=${address}/p2p/${otherId}`);
  const router = await kubo.gateway();
  const client = await startOnline({
    "Discovery.MDNS.Enabled": false,
    "Routing.Type": "delegated",
    "Routing.DelegatedRouters": [router],
    "Ipns.DelegatedPublishers": [router],
  });
  try {
    const cid = await provided(other, "who has it?");
    const where = { ID: otherId, Addrs: [address] };
    const named = async (path: string, type: number) =>
      namedBy((await client.call(path)).lines as RoutingEvent[], type);
    // Kubo only queries peers that have announced that they are servers.
    await eventually("the provider is found", async () => (await named(`dht/findprovs?arg=${cid}`, 4)).length > 0);
    assert.deepEqual(await named(`dht/findprovs?arg=${cid}`, 4), [where]);
    assert.deepEqual(await named(`dht/findpeer?arg=${otherId}`, 2), [where]);
    assert.equal((await client.call(`block/get?arg=${cid}`)).text, "who has it?");

    const { Name } = await other.value<{ Name: string }>(`name/publish?arg=/ipfs/${cid}`);
    assert.deepEqual(await client.value(`name/resolve?arg=${Name}`), { Path: `/ipfs/${cid}` });
    const own = await client.value<{ Name: string }>(`name/publish?arg=/ipfs/${cid}`);
    const [resolved] = await kubo.call<{ Path: string }>(`name/resolve?arg=${own.Name}`);
    assert.equal(resolved?.Path, `/ipfs/${cid}`);
  } finally {
    await client.stop();
  }
});
