import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createNode, type Node, nodeMetrics, retryAfter } from "#node/index.ts";
import { S3Server } from "#test/support/engines/s3_server.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { MountFixture, skip } from "../../mount/support.ts";

async function text(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of bytes) parts.push(part);
  return Buffer.concat(parts).toString();
}

describe("nodes of several hosts on one store", { skip: noSharedStore }, () => {
  async function hosts(t: { after(work: () => unknown): void }, count: number): Promise<Node[]> {
    const { settings } = await sharedStore();
    const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const nodes: Node[] = [];
    for (let at = 0; at < count; at += 1) {
      const node = await createNode({ repo: join(folder, String(at)), store: settings, offline: true });
      nodes.push(node);
      t.after(() => node.close());
    }
    return nodes;
  }

  test("content that one host adds, pins and writes to files is on the other host at once", async (t) => {
    const [one, other] = (await hosts(t, 2)) as [Node, Node];
    const { cid } = await one.add("of several hosts");
    assert.equal(await text(other.cat(cid)), "of several hosts");
    await one.files.write("/a", "first", { create: true });
    assert.equal(await text(other.files.read("/a")), "first");
    await other.files.write("/b", "second", { create: true });
    const names: string[] = [];
    for await (const { name } of one.files.ls("/")) names.push(name);
    assert.deepEqual(names, ["a", "b"]);
    const pinned: string[] = [];
    for await (const pin of other.pin.ls({ type: "recursive" })) pinned.push(pin.cid.toString());
    assert.ok(pinned.includes(cid.toString()));
  });

  test("a name that another host publishes again resolves to the new path on the host that published it before", async (t) => {
    const { settings } = await sharedStore();
    const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const keys_secret = join(folder, "secret");
    await writeFile(keys_secret, "a secret of these hosts, long enough for all of them");
    const open = async (name: string): Promise<Node> => {
      const node = await createNode({ repo: join(folder, name), store: { ...settings, keys_secret }, profile: "test" });
      t.after(() => node.close());
      await node.goOnline();
      return node;
    };
    const one = await open("one");
    const other = await open("other");
    const { id } = await one.key.gen("site");
    const first = await one.add("first");
    const second = await one.add("second");
    const publish = (node: Node, cid: typeof first.cid) => node.name.publish(cid, { key: "site", allowOffline: true });
    await publish(one, first.cid);
    await publish(other, second.cid);
    // Fetches the latest state of the log; otherwise only a notification would cause that.
    await one.lowLevel.metadata.get("any");
    assert.equal(await one.lowLevel.names.resolve(String(id)), `/ipfs/${second.cid}`);
  });

  test("files that a host wrote through a mount remain after it has ended and another host has collected garbage", {
    skip,
  }, async (t) => {
    const { settings } = await sharedStore();
    await using sandbox = await MountFixture.make();
    const mount = async () => (await sandbox.open({ store: settings })).mounts.mount(sandbox);
    await mount();
    await sandbox.shell("mkdir ipns/local/d; echo kept > ipns/local/d/file");
    await sandbox.close();
    const other = await createNode({ repo: join(sandbox.folder, "other"), store: settings, offline: true });
    t.after(() => other.close());
    const { cid } = await other.add("kept by nobody", { pin: false });
    const removed = (await Array.fromAsync(other.repo.gc())).map((each) => String(each.cid ?? each.err));
    assert.ok(removed.includes(String(cid)), removed.join());
    await mount();
    assert.equal(await sandbox.shell("cat ipns/local/d/file"), "kept\n");
  });

  test("requests to the store are counted in the metrics", async (t) => {
    const [node] = (await hosts(t, 1)) as [Node];
    const { cid } = await node.add("of several hosts");
    await text(node.cat(cid));
    const samples = await node.metrics.collect();
    const metric = (name: string, label?: string) =>
      Number(
        samples.find((each) => each.name === name && (label ?? "") === Object.values(each.labels ?? {}).join())?.value,
      );
    assert.equal(metric("modhost_node_store_available"), 1);
    for (const name of ["commits", "commit_calls", "round_trips"])
      assert.ok(metric(`modhost_node_store_${name}_total`) > 0, name);
    assert.ok(metric("modhost_node_store_requests_total", "put") >= 2);
    assert.ok(metric("modhost_node_store_bytes_total", "out") > "of several hosts".length);
    assert.ok(metric("modhost_node_store_block_reads_total", "cache") > 0);
    assert.equal(metric("modhost_node_store_block_reads_total", "store"), 0);
    assert.ok(metric("modhost_node_store_cache_bytes") > 0);
    for (const { name, labels = {} } of samples) {
      const { labels: declared = [] } = { labels: [], ...nodeMetrics[name as keyof typeof nodeMetrics] };
      assert.deepEqual(Object.keys(labels), [...declared], name);
    }
  });

  test("while the object store is unavailable, no block counts as faulty, and failed calls can be retried", async (t) => {
    const { settings } = await sharedStore();
    const s3 = await S3Server.start("bucket");
    const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const node = await createNode({ repo: folder, store: { ...settings, endpoint: s3.endpoint }, offline: true });
    t.after(() => node.close().catch(() => {}));
    const { cid } = await node.add("of a store that goes");
    await s3[Symbol.asyncDispose]();
    const canBeTriedAgain = (error: Error) => {
      assert.match(error.message, /s3:\/\/bucket\//);
      return retryAfter(error) !== undefined;
    };
    await assert.rejects(Array.fromAsync(node.repo.verify()), canBeTriedAgain);
    await assert.rejects(async () => node.add("more"), canBeTriedAgain);
    assert.equal(await text(node.cat(cid)), "of a store that goes");
    assert.match(String(node.lowLevel.problem), /the shared store cannot be reached/);
  });
});
