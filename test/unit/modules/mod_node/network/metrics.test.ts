import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createNode, type Node } from "modhost/node";

let folder: string;
let a: Node;
let b: Node;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-figures-"));
  [a, b] = await Promise.all(
    ["a", "b"].map((name) => createNode({ repo: join(folder, name) })) as [Promise<Node>, Promise<Node>],
  );
  await Promise.all([a.goOnline(), b.goOnline()]);
  const [address] = (await b.id()).addresses ?? [];
  assert.ok(address !== undefined);
  await a.swarm.connect(address);
});
after(async () => {
  await Promise.all([a, b].map((node) => node.close()));
  await rm(folder, { recursive: true, force: true });
});

async function samplesOf(node: Node): Promise<(name: string, ...labels: string[]) => unknown> {
  const samples = await node.metrics.collect();
  return (name, ...wanted) =>
    samples.find((sample) => {
      const own = Object.values(sample.labels ?? {});
      return sample.name === name && wanted.every((label) => own.includes(label));
    })?.value;
}

test("traffic on the network is counted at both ends", async () => {
  const { cid } = await b.add("x".repeat(2000), { rawLeaves: true });
  assert.equal(
    (await Array.fromAsync(a.cat(cid))).reduce((sum, { length }) => sum + length, 0),
    2000,
  );
  const own = await samplesOf(a);
  assert.equal(own("modhost_node_online"), 1);
  assert.equal(own("ipfs_p2p_peers_total", "/ip4/tcp"), 1);
  assert.equal(own("modhost_node_connections", "out"), 1);
  assert.equal(own("modhost_node_bitswap_blocks_total", "in"), 1);
  assert.equal(own("modhost_node_bitswap_bytes_total", "in"), 2000);
  assert.equal(own("modhost_node_bitswap_partners"), 1);
  assert.equal(own("ipfs_bitswap_wantlist_total"), 0);
  assert.deepEqual(own("ipfs_bitswap_recv_all_blocks_bytes"), { counts: [0, 0, 1, 0, 0, 0, 0], sum: 2000 });
  assert.equal(own("modhost_node_block_reads_total", "fetched"), 1);
  assert.ok(Number(own("modhost_node_network_bytes_total", "in")) > 2000);
  assert.ok(Number(own("modhost_node_protocol_bytes_total", "/ipfs/bitswap/1.2.0", "in")) > 2000);
  assert.ok(Number(own("modhost_node_dht_peers", "lan")) >= 0);
  const other = await samplesOf(b);
  assert.deepEqual(other("ipfs_bitswap_sent_all_blocks_bytes"), { counts: [0, 0, 1, 0, 0, 0, 0], sum: 2000 });
  assert.equal(other("modhost_node_bitswap_bytes_total", "out"), 2000);
});
