/** A node that only uses the gateway of another node as its router. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { type RpcHost, startOnline } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { provided, type RoutingPair, startRoutingPair } from "./pair.ts";

interface RoutingEvent {
  readonly Type: number;
  readonly Responses: readonly { readonly ID: string; readonly Addrs: readonly string[] }[] | null;
}

describe("a node that delegates routing to a gateway", () => {
  let pair: RoutingPair;
  let client: RpcHost;
  before(async () => {
    pair = await startRoutingPair();
    client = await startOnline({
      "Discovery.MDNS.Enabled": false,
      "Routing.Type": "delegated",
      "Routing.DelegatedRouters": [`${pair.url}/routing/v1`],
      "Ipns.DelegatedPublishers": [pair.url],
    });
  });
  after(() => Promise.all([client?.stop(), pair?.[Symbol.asyncDispose]()]));

  const named = async (path: string, type: number) => {
    const { status, text, lines } = await client.call(path);
    assert.equal(status, 200, text);
    return (lines as readonly RoutingEvent[])
      .filter(({ Type }) => Type === type)
      .flatMap(({ Responses }) => Responses ?? []);
  };

  test("the node finds the providers of a block and the addresses of a peer, and fetches the block there", async () => {
    const { other, otherId, address } = pair;
    const cid = await provided(other, "known by hearsay");
    const where = { ID: otherId, Addrs: [address] };
    assert.deepEqual(await named(`dht/findprovs?arg=${cid}`, 4), [where]);
    assert.deepEqual(await named(`dht/findpeer?arg=${otherId}`, 2), [where]);
    assert.equal((await client.call(`block/get?arg=${cid}`)).text, "known by hearsay");
    const { text } = await client.call("swarm/peers");
    assert.ok(text.includes(otherId), text);
  });

  test("the node resolves names of other nodes, and publishes its own", async () => {
    const { other } = pair;
    const { Name } = await other.value<{ Name: string }>("name/publish?arg=/ipfs/bafkqaaa&resolve=false");
    assert.deepEqual(await client.value(`name/resolve?arg=${Name}`), { Path: "/ipfs/bafkqaaa" });
    const own = await client.value<{ Name: string }>("name/publish?arg=/ipfs/bafkqabdfonsxg&resolve=false");
    assert.deepEqual(await other.value(`name/resolve?arg=${own.Name}`), { Path: "/ipfs/bafkqabdfonsxg" });
  });

  test("the node has no DHT, so it neither provides blocks nor responds to DHT queries", async () => {
    assert.equal((await client.call("dht/query?arg=QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN")).status, 500);
    const { text } = await client.call(`dht/findpeer?arg=12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5`);
    assert.match(text, /routing: not found/);
  });

  test("the gateway does not forward requests of clients to its own routers", async () => {
    const { gatewayHost, other, url } = pair;
    const requests: string[] = [];
    const router = createServer((request, response) => {
      requests.push(request.url?.replace(/^\/routing\/v1\/|\?.*/g, "") ?? "");
      response.writeHead(404).end();
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => router.once("listening", resolve));
    const { port } = router.address() as AddressInfo;
    try {
      const set = (key: string, value: unknown) =>
        gatewayHost.call(`config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`);
      assert.equal((await set("Routing.DelegatedRouters", [`http://127.0.0.1:${port}`])).status, 200);
      assert.equal((await set("Routing.Type", "auto")).status, 200);
      const cid = await provided(other, "a block of the other node");
      const peer = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
      const name = "k51qzi5uqu5dlvj2baxnqndepeb86cbk3ng7n3i46uzyxzyqj2xjonzllnv0v8";
      const paths = [`providers/${cid}`, `peers/${peer}`, `ipns/${name}`];
      for (const path of paths) assert.equal((await fetch(`${url}/routing/v1/${path}`)).status, 200, path);
      assert.deepEqual(
        requests.filter((path) => paths.includes(path)),
        [],
      );
      assert.equal((await gatewayHost.call(`dht/findprovs?arg=${cid}`)).status, 200);
      assert.ok(requests.includes(`providers/${cid}`), requests.join());
    } finally {
      router.close();
      router.closeAllConnections();
    }
  });
});
