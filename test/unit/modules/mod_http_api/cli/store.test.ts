/** `modhost node store`, on a store that a host has used. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { treesOf } from "#node/content/mfs/key_trees.ts";
import { createNode } from "#node/index.ts";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { carKey } from "#node/storage/shared/segments/names.ts";
import { s3Settings } from "#node/storage/shared/settings.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { Sandbox } from "./support.ts";

test("a shared store is described, verified, and cleared of orphaned objects", {
  skip: noSharedStore,
}, async () => {
  await using sandbox = await Sandbox.make();
  const { settings } = await sharedStore();
  const file = join(sandbox.folder, "host.json");
  await writeFile(file, JSON.stringify({ node_store: settings }));
  const store = (...words: string[]) => sandbox.node(["store", ...words, "--settings", file]);
  await using node = await createNode({ repo: join(sandbox.folder, "shared"), store: settings, offline: true });
  await node.add("of a shared store");

  const shown = await store("stat", "--json");
  const metrics = JSON.parse(shown.stdout);
  assert.equal(metrics.hosts, 1);
  assert.ok(metrics.blocks >= 1 && metrics.segments >= 1 && metrics.live <= metrics.bytes, shown.stdout);
  assert.match((await store("stat")).stdout, /^Hosts {5}1$/m);
  for (const more of [[], ["--read"]]) {
    const { code, stdout } = await store("verify", ...more);
    assert.equal(code, 0);
    assert.match(stdout, /segments, no faults/);
  }

  const objects = openS3(s3Settings(settings));
  const abandoned = carKey("zz-1");
  await objects.put(abandoned, Buffer.from("left behind"));
  assert.equal((await store("orphans")).stdout, `${abandoned}\n1 object\n`);
  assert.equal((await store("orphans", "--remove")).stdout, `${abandoned}\n1 object removed\n`);
  assert.equal((await store("orphans")).stdout, "0 objects\n");

  const stored = (await Array.fromAsync(objects.list(""))).flat();
  const segment = stored.find(({ key }) => key.endsWith(".car")) ?? assert.fail("there is no segment");
  await objects.delete([segment.key]);
  await objects.close();
  const damaged = await store("verify");
  assert.equal(damaged.code, 1);
  assert.match(damaged.stdout, /\.car is missing\n1 fault\n$/);
});

test("files that hosts wrote through mounts are listed, and removed once a host is gone", {
  skip: noSharedStore,
}, async () => {
  await using sandbox = await Sandbox.make();
  const { settings } = await sharedStore();
  const file = join(sandbox.folder, "host.json");
  await writeFile(file, JSON.stringify({ node_store: settings }));
  const mounts = (...words: string[]) => sandbox.node(["store", "mounts", ...words, "--settings", file]);
  await using node = await createNode({ repo: join(sandbox.folder, "shared"), store: settings, offline: true });
  const { cid } = await node.add("written through a mount");
  const { metadata, repo } = node.lowLevel;
  const peer = repo.identity.peerId.toString();
  for (const host of [peer, "ANOTHER"]) {
    await treesOf(metadata, host).transaction((writer) => writer.put("KEY/files/root", cid.bytes));
  }
  const own = `${peer} /ipns/KEY ${cid}\n`;
  const other = `ANOTHER /ipns/KEY ${cid}\n`;
  const listed = await mounts();
  assert.equal(listed.code, 0, listed.stderr);
  assert.ok(listed.stdout.includes(own) && listed.stdout.endsWith("2 folders\n"), listed.stdout);
  const refused = await mounts("--remove", peer);
  assert.deepEqual([refused.code, /runs: remove what is below its \/ipns there/.test(refused.stderr)], [1, true]);
  assert.equal((await mounts("--remove", "ANOTHER")).stdout, `${other}1 folders removed\n`);
  assert.equal((await mounts()).stdout, `${own}1 folders\n`);
  await node.close();
  assert.equal((await mounts("--remove", peer)).stdout, `${own}1 folders removed\n`);
});

test("a configuration without a shared store is reported", async () => {
  await using sandbox = await Sandbox.make();
  const file = join(sandbox.folder, "host.json");
  await writeFile(file, "{}");
  const { code, stderr } = await sandbox.node(["store", "stat", "--settings", file]);
  assert.equal(code, 1);
  assert.match(stderr, /has no option node_store: name the config file/);
});
