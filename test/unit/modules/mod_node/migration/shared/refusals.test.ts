/**
 * Migrations with content that cannot be joined fail before anything is written, unless the user
 * has decided.
 */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { migrateToShared } from "modhost/node";
import { clientNode } from "#node/library/client_node.ts";
import { openNode } from "#node/node/open.ts";
import { noSharedStore } from "#test/support/engines/shared_store.ts";
import { opened, rootOf } from "#test/unit/modules/mod_node/migration/from_go_ipfs/support.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { objectsOf, storeIn } from "./support.ts";

const skip = noSharedStore;

test("conflicts of files, names and module state are refused, and keep and replace resolve them", {
  skip,
}, async (t) => {
  const folder = await emptyFolder(t);
  const settings = await storeIn(folder, { keys_secret: undefined });
  const host = { repo: join(folder, "host"), store: settings };
  const own = join(folder, "own");
  const write = (node: Parameters<Parameters<typeof opened>[1]>[0], text: string) =>
    clientNode(node as never).files.write("/file", text, { create: true });
  const name = await opened(own, async (node) => {
    const key = await node.keys.generate("mine", { type: "ed25519" });
    const { cid } = await clientNode(node as never).add("of the repo");
    await node.names.publish(await node.names.key("mine"), `/ipfs/${cid}`, { offline: true });
    await node.metadata.transaction((writer) => writer.put("modules/example/state", Buffer.from("of the repo")));
    await write(node, "of the repo");
    return { id: key.id, key: await node.keys.export("mine"), path: `/ipfs/${cid}` };
  });
  const there = await opened(host, async (node) => {
    await node.keys.import("mine", name.key);
    const { cid } = await clientNode(node as never).add("of the host");
    await node.names.publish(await node.names.key("mine"), `/ipfs/${cid}`, { offline: true });
    await node.metadata.transaction((writer) => writer.put("modules/example/state", Buffer.from("of the host")));
    await write(node, "of the host");
    return { root: await rootOf(node), path: `/ipfs/${cid}` };
  });
  const objects = (await objectsOf(settings)).length;
  await assert.rejects(migrateToShared(own, settings), ({ message }: Error) => {
    assert.match(message, /^nothing was copied, as both have:\n {2}files of their own \(MFS\): Qm/);
    assert.match(message, new RegExp(`the name ${name.id} is published for ${name.path} and for ${there.path}`));
    assert.match(message, /the entry example\/state of a module\n.*--on-conflict keep/s);
    return true;
  });
  assert.equal((await objectsOf(settings)).length, objects);
  const now = () =>
    opened(host, async (node) => ({
      root: await rootOf(node),
      path: await node.names.resolve(`/ipns/${name.id}`, { offline: true }),
      state: Buffer.from((await node.metadata.get("modules/example/state")) ?? []).toString(),
    }));
  await migrateToShared(own, settings, { onConflict: "keep" });
  assert.deepEqual(await now(), { ...there, state: "of the host" });
  const { files } = await migrateToShared(own, settings, { onConflict: "replace" });
  assert.deepEqual(await now(), { root: String(files), path: name.path, state: "of the repo" });
});

test("references to files are refused, and stored as blocks on request", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const settings = await storeIn(folder);
  const own = join(folder, "own");
  const file = join(folder, "files");
  await mkdir(file);
  await writeFile(join(file, "a"), "stays where it is");
  const node = await openNode({ repo: own, offline: true });
  await node.repo.config.set("Experimental.FilestoreEnabled", () => true);
  await node.close();
  const cid = await opened(own, async (node) => {
    const block = { path: join(file, "a"), offset: 0 };
    const { cid } = await clientNode(node as never).add("stays where it is", { rawLeaves: true, pin: false });
    const bytes = Buffer.from("stays where it is");
    await node.blocks.store.delete([cid]);
    await node.blocks.store.put([{ cid, bytes, at: block }]);
    await node.pins.keep([cid]);
    return cid;
  });
  await assert.rejects(migrateToShared(own, settings), /refers to files or URLs for 1 block .*--copy-references/);
  await migrateToShared(own, settings, { copyReferences: true });
  await opened({ repo: join(folder, "host"), store: settings }, async (node) => {
    assert.equal(Buffer.from((await node.blocks.store.get(cid)) ?? []).toString(), "stays where it is");
  });
});

test("a different key with the same name is refused with every setting", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const settings = await storeIn(folder);
  const own = join(folder, "own");
  for (const repo of [{ repo: own }, { repo: join(folder, "host"), store: settings }])
    await opened(repo, (node) => node.keys.generate("mine", { type: "ed25519" }));
  const objects = await objectsOf(settings);
  const refused = /^NodeError: nothing was copied, as both have a key of this name, and not the same: mine/;
  await assert.rejects(migrateToShared(own, settings, { onConflict: "replace" }), refused);
  assert.deepEqual(await objectsOf(settings), objects);
});

test("keys stay in the repo if hosts do not share keys, and a notice says so", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const settings = await storeIn(folder, { keys_secret: undefined });
  const own = join(folder, "own");
  await opened(own, (node) => node.keys.generate("mine", { type: "ed25519" }));
  const notices: string[] = [];
  const { keys } = await migrateToShared(own, settings, { onNotice: (sentence) => notices.push(sentence) });
  assert.equal(keys, 0);
  assert.match(notices.join("\n"), /^1 key for names stays in .+keystore: .*keys_secret/m);
});
