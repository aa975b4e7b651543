/** Today's reference and this node, each of which takes blocks and archives from the other's gateway. */
import assert from "node:assert/strict";
import { digestOf, keystream } from "#test/support/content.ts";
import { GoIpfs, routedBy, withoutKubo } from "#test/support/go_ipfs.ts";
import { startRoutingPair } from "#test/unit/modules/mod_http_gateway/routing/pair.ts";

const SIZE = 5_000_000;

export async function* kuboBothWays(): AsyncGenerator<string, void, undefined> {
  if (withoutKubo !== false) {
    yield `left out: ${withoutKubo}`;
    return;
  }
  await using pair = await startRoutingPair({ https_ports: [0] });
  const { asked } = pair;
  const own = `http://127.0.0.1:${asked.http}`;
  const announced = JSON.stringify([`/ip4/127.0.0.1/tcp/${asked.https}/tls/http`]);
  await asked.call(`config?arg=Addresses.AppendAnnounce&arg=${encodeURIComponent(announced)}&json=true`);
  await using kubo = await GoIpfs.startKubo((config) => {
    config.Routing = routedBy(pair.url);
    // Only HTTP is left.
    config.Swarm = { ...config.Swarm, AddrFilters: ["/ip4/127.0.0.0/ipcidr/8"] };
    config.HTTPRetrieval = { Enabled: true, TLSInsecureSkipVerify: true };
    config.Experimental = { UrlstoreEnabled: true };
  });

  const routed = await added(own, 1);
  await asked.call(`dht/provide?arg=${routed}`);
  assert.equal(await read(kubo.url, routed), digestOf(keystream(SIZE, 1)));
  const [stat] = await kubo.call<{ BlocksReceived: number }>("bitswap/stat");
  assert.deepEqual(await kubo.call("swarm/peers"), [{ Peers: null }]);
  yield `it takes ${stat?.BlocksReceived} blocks over HTTP/2, from where our routing v1 leads it`;

  const { Name } = await asked.value<{ Name: string }>(`name/publish?arg=/ipfs/${routed}`);
  const [resolved] = await kubo.call<{ Path: string }>(`name/resolve?arg=${Name}`);
  assert.equal(resolved?.Path, `/ipfs/${routed}`);
  yield "it resolves a name of ours by our routing v1";

  const path = `${pair.url}/ipfs/${await added(own, 2)}`;
  const linked = await kubo.run("add", "--nocopy", "--quieter", "--chunker=size-100000", path);
  assert.equal(await read(kubo.url, linked), digestOf(keystream(SIZE, 2)));
  yield "it reads ranges of a file by its path, which it keeps as a link";

  for (const [from, gateway, to, seed] of [
    [own, pair.url, kubo.url, 3],
    [kubo.url, await kubo.gateway(), own, 4],
  ] as const) {
    const cid = await added(from, seed);
    const archive = await fetch(`${gateway}/ipfs/${cid}?format=car`);
    await sent(`${to}/api/v0/dag/import`, await archive.blob());
    assert.equal(await read(to, cid), digestOf(keystream(SIZE, seed)));
  }
  yield "an archive of each is content of the other";
}

/** A file of which nobody else has a block; its CID. */
async function added(url: string, seed: number): Promise<string> {
  const answer = await sent(`${url}/api/v0/add?cid-version=1`, new Blob([...keystream(SIZE, seed)]));
  return ((await answer.json()) as { readonly Hash: string }).Hash;
}

async function sent(url: string, file: Blob): Promise<Response> {
  const body = new FormData();
  body.append("file", file);
  const answer = await fetch(url, { method: "POST", body });
  if (!answer.ok) throw new Error(`${url}: ${await answer.text()}`);
  return answer;
}

/** The digest of a file. */
async function read(url: string, cid: string): Promise<string> {
  const answer = await fetch(`${url}/api/v0/cat?arg=${cid}`, { method: "POST" });
  if (!answer.ok) throw new Error(`${url}: ${await answer.text()}`);
  return digestOf([new Uint8Array(await answer.arrayBuffer())]);
}
