import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clientNode } from "#node/library/client_node.ts";
import { openNode } from "#node/node/open.ts";
import { provider } from "../mod_node/network/http_retrieval/support.ts";
import { startGatewayWith } from "./support.ts";

test("other nodes can probe the gateway, and get blocks of up to 2 MiB with HEAD and GET; a missing block is 404", async () => {
  const cids: string[] = [];
  await using host = await startGatewayWith(
    async (node) => {
      for (const bytes of [randomBytes(2 ** 21), randomBytes(2 ** 21 + 1)])
        cids.push(String(await node.block.put(bytes, { format: "raw" })));
    },
    { gateway_deserialized_responses: false, gateway_html_errors: true },
  );
  const raw = { accept: "application/vnd.ipld.raw" };
  const ask = async (cid: string) => {
    const responses = [await host.ask(`/ipfs/${cid}?format=raw`, raw), await host.ask(`/ipfs/${cid}`, raw, "HEAD")];
    return responses.map(({ status, headers }) => [status, headers["content-length"]]);
  };
  const [largest = "", larger = ""] = cids;
  assert.deepEqual(await ask("bafkqaaa"), [
    [200, "0"],
    [200, "0"],
  ]);
  assert.deepEqual(await ask(largest), [
    [200, "2097152"],
    [200, "2097152"],
  ]);
  const statuses = async (cid: string) => (await ask(cid)).map(([status]) => status);
  assert.deepEqual(await statuses(larger), [410, 410]);
  assert.deepEqual(await statuses("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"), [404, 404]);
});

test("another node fetches a file from this gateway over HTTPS and HTTP/2 without being its peer", async (t) => {
  const content = randomBytes(3_000_000);
  let root = "";
  await using host = await startGatewayWith(
    async (node) => void (root = (await node.add(content, { rawLeaves: true })).cid.toString()),
    { https_ports: [0], gateway_deserialized_responses: false },
  );
  const folder = await mkdtemp(join(tmpdir(), "modhost-source-"));
  const node = await openNode({ repo: folder, profile: "local" });
  t.after(async () => {
    await node.close();
    await rm(folder, { recursive: true, force: true });
  });
  await node.repo.config.set("HTTPRetrieval.TLSInsecureSkipVerify", () => true);
  await node.goOnline();
  const network = await node.network();
  const record = await provider(`/ip4/127.0.0.1/tcp/${host.https}/tls/http`);
  network.bitswap.providers = {
    async *findProviderPeers() {
      yield record;
    },
  };
  const got: Uint8Array[] = [];
  for await (const piece of clientNode(node).cat(root)) got.push(piece);
  assert.ok(Buffer.concat(got).equals(content));
  assert.ok(network.httpSources.counts.block >= 12);
  assert.equal(network.bitswap.stat().peers.length, 0);
  assert.equal(network.bitswap.stat().dataReceived, network.httpSources.counts.bytes);
});
