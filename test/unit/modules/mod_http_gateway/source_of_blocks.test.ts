import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clientNode } from "#node/client_node.ts";
import { openNode } from "#node/open.ts";
import { provider } from "../mod_node/network/http_retrieval/support.ts";
import { startGatewayWith } from "./support.ts";

test("another node gets a file from this gateway over HTTPS and HTTP/2, though the two are no peers", async (t) => {
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
