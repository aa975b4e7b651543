/** Copies the files of repo snapshots and opens nodes on the copies. */
import assert from "node:assert/strict";
import { appendFile, cp, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { createNode, memoryStores, type Node, type NodeOptions } from "modhost/node";
import type { BackupSnapshot } from "#core/types.ts";
import { HostGroup } from "#test/unit/modules/mod_node/storage/shared/gc/host_group.ts";

let home: string;
let folders = 0;

before(async () => {
  home = await mkdtemp(join(tmpdir(), "modhost-hold-"));
});
after(() => rm(home, { recursive: true }));

const folder = () => join(home, String(++folders));
const signal = new AbortController().signal;

/**
 * Copies the files of a snapshot to other folders, and returns these by the names of the folders in
 * the snapshot.
 */
async function copied({ folders, files }: BackupSnapshot): Promise<Record<string, string>> {
  const copies = Object.fromEntries(Object.keys(folders).map((name) => [name, folder()]));
  for await (const file of files) {
    const path = join(copies[file.folder] ?? "", file.path);
    await mkdir(file.path.endsWith("/") ? path : dirname(path), { recursive: true });
    if (!file.path.endsWith("/")) await writeFile(path, Buffer.concat(await Array.fromAsync(file.read(0))));
  }
  return copies;
}

async function filled(options: Omit<NodeOptions, "repo">) {
  const repo = folder();
  const node = await createNode({ repo, offline: true, ...options });
  const { cid } = await node.add("what is pinned");
  await node.files.write("/a/b", "what is in a file", { create: true, parents: true });
  await node.key.gen("other");
  for (const key of ["self", "other"]) await node.name.publish(`/ipfs/${cid}`, { key, allowOffline: true });
  return { repo, node, cid };
}

const textOf = async (reading: AsyncIterable<Uint8Array>) => Buffer.concat(await Array.fromAsync(reading)).toString();

async function assertSame(copy: Node, node: Node, cid: Awaited<ReturnType<Node["add"]>>["cid"]): Promise<void> {
  assert.equal(await textOf(copy.cat(cid)), "what is pinned");
  assert.equal(await textOf(copy.files.read("/a/b")), "what is in a file");
  assert.deepEqual(
    (await copy.key.list()).map(({ id }) => id).sort(),
    (await node.key.list()).map(({ id }) => id).sort(),
  );
  for (const { name, id } of await copy.key.list()) {
    const paths = await Array.fromAsync(copy.name.resolve(`/ipns/${id}`, { nocache: true }));
    assert.equal(paths.at(-1), `/ipfs/${cid}`, `what the key ${name} has published`);
  }
  const pins = await Array.fromAsync(copy.pin.ls({ type: "recursive" }), (pin) => pin.cid.toString());
  assert.ok(pins.includes(cid.toString()));
}

for (const profile of ["local", "local,flatfs"]) {
  test(`a snapshot of a repo with the profile ${profile} opens with its content of that moment`, async () => {
    const { repo, node, cid } = await filled({ profile });
    const snapshot = await node.lowLevel.hold(signal);
    assert.deepEqual(snapshot.folders, { repo });
    const later = await node.add("what came later");
    await node.pin.rm(cid);
    for await (const _ of node.repo.gc());
    const { repo: to = "" } = await copied(snapshot);
    await snapshot.release();
    await using copy = await createNode({ repo: to, offline: true, init: false });
    await assertSame(copy, node, cid);
    await assert.rejects(Array.fromAsync(copy.pin.ls({ paths: later.cid })), /is not pinned/);
    await node.close();
  });
}

test("denied content is denied in a copy, too", async () => {
  const { repo, node, cid } = await filled({});
  await mkdir(join(repo, "denylists"));
  await writeFile(join(repo, "denylists", "own.deny"), `/ipfs/${cid}\n`);
  const snapshot = await node.lowLevel.hold(signal);
  const { repo: to = "" } = await copied(snapshot);
  await snapshot.release();
  await using copy = await createNode({ repo: to, offline: true, init: false });
  await assert.rejects(textOf(copy.cat(cid)), { code: "CONTENT_BLOCKED" });
  await node.close();
});

test("a snapshot contains stores outside of the repo", async () => {
  const data = folder();
  const { repo, node, cid } = await filled({ data });
  const snapshot = await node.lowLevel.hold(signal);
  assert.deepEqual(snapshot.folders, { repo, data });
  const copies = await copied(snapshot);
  await snapshot.release();
  assert.deepEqual(await readdir(join(data, "scratch")), []);
  await using copy = await createNode({ repo: copies.repo ?? "", data: copies.data, offline: true, init: false });
  await assertSame(copy, node, cid);
  await node.close();
});

test("the metadata of a backup is restored once, and only if it is complete", async () => {
  const { node } = await filled({});
  const snapshot = await node.lowLevel.hold(signal);
  const { repo = "" } = await copied(snapshot);
  const damaged = folder();
  await cp(repo, damaged, { recursive: true });
  await snapshot.release();
  await appendFile(join(damaged, "metadata.restore"), "x");
  await assert.rejects(createNode({ repo: damaged, offline: true }), /the copy of the metadata in .* is damaged/);
  const copy = await createNode({ repo, offline: true });
  await copy.files.rm("/a", { recursive: true });
  await copy.close();
  await assert.rejects(stat(join(repo, "metadata.restore")), /ENOENT/);
  await using again = await createNode({ repo, offline: true });
  await assert.rejects(textOf(again.files.read("/a/b")), /does not exist/);
  await node.close();
});

test("stores in memory allow no snapshot, and an abort leaves no files behind", async () => {
  await using memory = await createNode({ repo: folder(), offline: true, stores: async () => memoryStores() });
  await assert.rejects(memory.lowLevel.hold(signal), /its blocks are not in files/);
  const { node } = await filled({});
  await assert.rejects(node.lowLevel.hold(AbortSignal.abort(new Error("enough"))), /enough/);
  const { scratch } = node.lowLevel;
  assert.deepEqual(await readdir(scratch), []);
  await node.close();
});

test("a snapshot of a shared store's host contains identity, configuration and keys, and a host can start with them", async (t) => {
  const hosts = new HostGroup();
  const node = await hosts.node(t);
  await node.add("in the store of all");
  const snapshot = await node.lowLevel.hold(signal);
  assert.match(snapshot.notes?.join(" ") ?? "", /they are in the shared store, which needs a backup of its own/);
  const { repo = "" } = await copied(snapshot);
  await snapshot.release();
  assert.deepEqual((await readdir(repo)).sort(), ["config", "datastore_spec", "keystore", "version"]);
  const { id } = await node.id();
  await using again = await createNode({ repo, offline: true, init: false, stores: async () => memoryStores() });
  assert.equal(String((await again.id()).id), String(id));
});
