/**
 * What is written through the mounts of a host that shares its store: collections of other hosts
 * keep it, whatever becomes of the host.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import { treesOf } from "#node/content/mfs/key_trees.ts";
import { openNode } from "#node/node/open.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { eventually } from "#test/support/eventually.ts";
import { HostGroup, shutOut } from "../storage/shared/gc/host_group.ts";
import { MountPlace, skip } from "./support.ts";

/** A host that mounts, with stores of its own that outlive it, and another one that collects. */
async function two(t: TestContext) {
  const store = new HostGroup();
  const hostMetadata = { ...memoryMetadata(), close: async () => undefined };
  const place = await MountPlace.make();
  t.after(() => place[Symbol.asyncDispose]());
  const mount = async () => {
    const node = await place.open({ stores: () => store.stores(t, hostMetadata) });
    await node.mounts.mount(place);
    return node;
  };
  const other = await store.node(t);
  return { store, hostMetadata, place, mount, other };
}

/** What went. */
async function collect({ repo }: Node): Promise<string[]> {
  return (await Array.fromAsync(repo.gc())).map(({ cid, err }) => String(cid ?? err));
}

const loose = (node: Node): Promise<CID> => node.add("kept by nobody", { pin: false }).then(({ cid }) => cid);

const write = "mkdir ipns/local/d; echo kept > ipns/local/d/file; head -c 700000 /dev/zero > ipns/local/large";
const read = "cat ipns/local/d/file; wc -c < ipns/local/large";

test("a host that is stopped: what it has written is there when it comes back", { skip }, async (t) => {
  const { place, mount, other } = await two(t);
  await mount();
  await place.shell(write);
  await place.close();
  const garbage = await loose(other);
  assert.ok((await collect(other)).includes(String(garbage)));
  await mount();
  assert.equal(await place.shell(read), "kept\n700000\n");
});

test("a host that is shut out as soon as a program has closed its file: nothing of that is lost", {
  skip,
}, async (t) => {
  const { store, place, mount, other } = await two(t);
  const node = await mount();
  await place.shell(write);
  const { rejoined } = shutOut(store, node);
  const garbage = await loose(other);
  assert.ok((await collect(other)).includes(String(garbage)));
  await rejoined();
  await node.mounts.mount(place);
  assert.equal(await place.shell(read), "kept\n700000\n");
});

test("a host that was shut out goes on writing: directories that it had stored are stored again", {
  skip,
}, async (t) => {
  const { store, place, mount, other } = await two(t);
  const node = await mount();
  for (let round = 0; round < 2; round += 1) {
    // A listing stores the directories, and no root has them until they are published.
    await place.shell(`mkdir -p ipns/local/d/${round}; echo ${round} > ipns/local/d/${round}/file; ls ipns/local/d`);
    await node.blocks.store.sync();
    const { rejoined } = shutOut(store, node);
    await collect(other);
    await rejoined();
  }
  await place.shell("echo last > ipns/local/last");
  const name = String(node.repo.identity.peerId);
  let published = "";
  await eventually("all of it is published", async () => {
    published = await node.names.resolve(name, { offline: true });
    return node.resolve(`${published}/last`, { offline: true }).catch(() => undefined);
  });
  await place.close();
  await mount();
  assert.equal(await place.shell("cat ipns/local/d/0/file ipns/local/d/1/file ipns/local/last"), "0\n1\nlast\n");
  await collect(other);
  const listed = await Array.fromAsync(other.refs(published, { recursive: true }));
  assert.deepEqual(
    listed.filter(({ err }) => err !== ""),
    [],
  );
  for (const [path, content] of [
    ["d/0/file", "0\n"],
    ["d/1/file", "1\n"],
    ["last", "last\n"],
  ])
    assert.equal(Buffer.concat(await Array.fromAsync(other.cat(`${published}/${path}`))).toString(), content);
});

test("while the database is away what is there can be read, and what is written is refused", { skip }, async (t) => {
  const { store, place, mount } = await two(t);
  const node = await mount();
  await place.shell(write);
  // Everything is published, and the kernel knows nothing of it.
  await node.mounts.unmount();
  await node.mounts.mount(place);
  await place.shell("ls ipns/local");
  store.log.available = false;
  assert.equal(await place.shell(read), "kept\n700000\n");
  await assert.rejects(place.shell("mkdir ipns/local/more"), /Input\/output error/);
  store.log.available = true;
  await place.shell("mkdir ipns/local/more");
});

test("what an earlier version had kept on the host alone is brought to the others at the start", async (t) => {
  const { store, hostMetadata, place, other } = await two(t);
  const { cid } = await other.add("written by an earlier version", { pin: false });
  const kept = treesOf(hostMetadata);
  await kept.transaction((writer) => writer.put("KEY/files/root", cid.bytes));
  const open = () => openNode({ repo: place.repo, offline: true, stores: () => store.stores(t, hostMetadata) });
  const node = await open();
  assert.deepEqual(await kept.keys({ limit: 1 }), []);
  assert.deepEqual((await node.mounts.roots()).map(String), [String(cid)]);
  await node.close();
  const garbage = await loose(other);
  assert.deepEqual(await collect(other), [String(garbage)]);
  assert.ok(await other.lowLevel.blocks.find(cid));
});
