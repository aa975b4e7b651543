/**
 * Kubo 0.43 and this node, each of which gets blocks, archives, routes and names from the other's
 * gateway.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { digestOf, keystream } from "#test/support/content.ts";
import { GoIpfs, routedBy, withoutKubo } from "#test/support/go_ipfs.ts";
import { type RpcHost, startOnline } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { startRoutingPair } from "#test/unit/modules/mod_http_gateway/routing/pair.ts";

const SIZE = 5_000_000;

type Lines = AsyncGenerator<string, void, undefined>;

export async function* kuboBothWays(): Lines {
  if (withoutKubo !== false) {
    yield `left out: ${withoutKubo}`;
    return;
  }
  yield* kuboFromUs();
  yield* weFromKubo();
}

async function* kuboFromUs(): Lines {
  await using pair = await startRoutingPair({ https_ports: [0] });
  const { gatewayHost } = pair;
  const own = urlOf(gatewayHost);
  const announced = JSON.stringify([`/ip4/127.0.0.1/tcp/${gatewayHost.https}/tls/http`]);
  await gatewayHost.call(`config?arg=Addresses.AppendAnnounce&arg=${encodeURIComponent(announced)}&json=true`);
  await using kubo = await GoIpfs.startKubo((config) => {
    config.Routing = routedBy(pair.url);
    // HTTP is the only transport left.
    config.Swarm = { ...config.Swarm, AddrFilters: ["/ip4/127.0.0.0/ipcidr/8"] };
    config.HTTPRetrieval = { Enabled: true, TLSInsecureSkipVerify: true };
    config.Experimental = { UrlstoreEnabled: true };
  });

  const routed = await added(own, 1);
  await gatewayHost.call(`dht/provide?arg=${routed}`);
  assert.equal(await read(kubo.url, routed), digestOf(keystream(SIZE, 1)));
  const [stat] = await kubo.call<{ BlocksReceived: number }>("bitswap/stat");
  assert.deepEqual(await kubo.call("swarm/peers"), [{ Peers: null }]);
  yield `Kubo gets ${stat?.BlocksReceived} blocks over HTTP/2, from the provider that our routing v1 names`;

  const { Name } = await gatewayHost.value<{ Name: string }>(`name/publish?arg=/ipfs/${routed}`);
  const [resolved] = await kubo.call<{ Path: string }>(`name/resolve?arg=${Name}`);
  assert.equal(resolved?.Path, `/ipfs/${routed}`);
  yield "Kubo resolves our name by our routing v1";

  const path = `${pair.url}/ipfs/${await added(own, 2)}`;
  const linked = await kubo.run("add", "--nocopy", "--quieter", "--chunker=size-100000", path);
  assert.equal(await read(kubo.url, linked), digestOf(keystream(SIZE, 2)));
  yield "Kubo reads ranges of a file by its path, which it stores as a link";

  await archiveGoes([own, pair.url], kubo.url, 3);
  yield "Kubo imports an archive of ours";
}

async function* weFromKubo(): Lines {
  await using kubo = await GoIpfs.startKubo();
  const gateway = await kubo.gateway();

  await using router = await startRouter(`/ip4/127.0.0.1/tcp/${new URL(gateway).port}/http`);
  await using overHttp = await startRouted(router.url);
  const file = await added(kubo.url, 4);
  assert.equal(await read(urlOf(overHttp), file), digestOf(keystream(SIZE, 4)));
  const { BlocksReceived } = await overHttp.value<{ BlocksReceived: number }>("bitswap/stat");
  assert.deepEqual(await overHttp.value("swarm/peers"), { Peers: null });
  yield `we get ${BlocksReceived} blocks from Kubo's gateway over HTTP, which a router names`;

  await using routed = await startRouted(gateway);
  const other = await added(kubo.url, 5);
  assert.equal(await read(urlOf(routed), other), digestOf(keystream(SIZE, 5)));
  yield "we find Kubo by its routing v1";

  await kubo.call(`name/publish?arg=/ipfs/${other}&allow-offline=true`);
  const { Path } = await routed.value<{ Path: string }>(`name/resolve?arg=${kubo.id}`);
  assert.equal(Path, `/ipfs/${other}`);
  yield "we resolve Kubo's name by its routing v1";

  await archiveGoes([kubo.url, gateway], urlOf(overHttp), 6);
  yield "we import an archive of Kubo";
}

/** Starts a node of ours that uses only this router. */
function startRouted(endpoint: string): Promise<RpcHost> {
  const keys = Object.entries(routedBy(endpoint)).map(([name, value]) => [`Routing.${name}`, value]);
  return startOnline({ ...Object.fromEntries(keys), "Discovery.MDNS.Enabled": false });
}

const urlOf = ({ http }: RpcHost): string => `http://127.0.0.1:${http}`;

async function archiveGoes([from, gateway]: readonly [string, string], to: string, seed: number): Promise<void> {
  const cid = await added(from, seed);
  const archive = await fetch(`${gateway}/ipfs/${cid}?format=car`);
  await sent(`${to}/api/v0/dag/import`, await archive.blob());
  assert.equal(await read(to, cid, "offline=true"), digestOf(keystream(SIZE, seed)));
}

/** Adds a file of which no other node has a block. Resolves to its CID. */
async function added(url: string, seed: number): Promise<string> {
  const response = await sent(`${url}/api/v0/add?cid-version=1`, new Blob([...keystream(SIZE, seed)]));
  return ((await response.json()) as { readonly Hash: string }).Hash;
}

async function sent(url: string, file: Blob): Promise<Response> {
  const body = new FormData();
  body.append("file", file);
  const response = await fetch(url, { method: "POST", body });
  if (!response.ok) throw new Error(`${url}: ${await response.text()}`);
  return response;
}

/** Resolves to the digest of a file. */
async function read(url: string, cid: string, how = ""): Promise<string> {
  const response = await fetch(`${url}/api/v0/cat?arg=${cid}&${how}`, { method: "POST" });
  if (!response.ok) throw new Error(`${url}: ${await response.text()}`);
  return digestOf([new Uint8Array(await response.arrayBuffer())]);
}

/** Starts a server of delegated routing that always names the same gateway as the provider. */
async function startRouter(address: string): Promise<AsyncDisposable & { readonly url: string }> {
  const ID = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
  const record = { Schema: "peer", ID, Addrs: [address], Protocols: ["transport-ipfs-gateway-http"] };
  const server = createServer(({ url = "" }, response) => {
    const Providers = url.startsWith("/routing/v1/providers/") ? [record] : [];
    response.setHeader("content-type", "application/json").end(JSON.stringify({ Providers }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close().closeAllConnections();
      await closed;
    },
  };
}
