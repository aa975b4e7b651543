/** Today's reference and this node, each of which takes blocks and archives from the other's gateway. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { digestOf, keystream } from "#test/support/content.ts";
import { GoIpfs, routedBy, withoutKubo } from "#test/support/go_ipfs.ts";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";

const SIZE = 5_000_000;

export async function* kuboBothWays(): AsyncGenerator<string, void, undefined> {
  if (withoutKubo !== false) {
    yield `left out: ${withoutKubo}`;
    return;
  }
  await using ours = await startRpc({ modules_enabled: ["http", "http_api", "http_gateway"], https_ports: [0] });
  await using router = await startRouter(`/ip4/127.0.0.1/tcp/${ours.https}/tls/http`);
  await using kubo = await GoIpfs.startKubo((config) => {
    config.Routing = routedBy(router.url);
    config.HTTPRetrieval = { Enabled: true, TLSInsecureSkipVerify: true };
  });

  const own = `http://127.0.0.1:${ours.http}`;

  assert.equal(await read(kubo.url, await added(own, 1)), digestOf(keystream(SIZE, 1)));
  const [stat] = await kubo.call<{ BlocksReceived: number; Peers: readonly string[] }>("bitswap/stat");
  assert.deepEqual(stat?.Peers, []);
  yield `it takes ${stat?.BlocksReceived} blocks from us over HTTP/2, without a peer`;

  for (const [from, gateway, to, seed] of [
    [own, own, kubo.url, 2],
    [kubo.url, await kubo.gateway(), own, 3],
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
  return digestOf([new Uint8Array(await answer.arrayBuffer())]);
}

/** Delegated routing that names one gateway, whatever is asked for. */
async function startRouter(address: string): Promise<AsyncDisposable & { readonly url: string }> {
  const ID = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
  const record = { Schema: "peer", ID, Addrs: [address], Protocols: ["transport-ipfs-gateway-http"] };
  const server = createServer(({ url = "" }, answer) => {
    const Providers = url.startsWith("/routing/v1/providers/") ? [record] : [];
    answer.setHeader("content-type", "application/json").end(JSON.stringify({ Providers }));
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
