/**
 * Tests writes through the mounts of a host that shares its store: collections of other hosts spare
 * the content, whatever happens to the host.
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
import { MountFixture, skip } from "./support.ts";

/**
 * A host that mounts, with stores of its own that outlive it, and another host that collects
 * garbage.
 */
async function two(t: TestContext) {
  const store = new HostGroup();
  const hostMetadata = { ...memoryMetadata(), close: async () => undefined };
  const fixture = await MountFixture.make();
  t.after(() => fixture[Symbol.asyncDispose]());
  const mount = async () => {
    const node = await fixture.open({ stores: () => store.stores(t, hostMetadata) });
    await node.mounts.mount(fixture);
    return node;
  };
  const other = await store.node(t);
  return { store, hostMetadata, fixture, mount, other };
}

/** Collects garbage and returns the removed CIDs. */
async function collect({ repo }: Node): Promise<string[]> {
  return (await Array.fromAsync(repo.gc())).map(({ cid, err }) => String(cid ?? err));
}

const loose = (node: Node): Promise<CID> => node.add("kept by nobody", { pin: false }).then(({ cid }) => cid);

const write = "mkdir ipns/local/d; echo kept > ipns/local/d/file; head -c 700000 /dev/zero > ipns/local/large";
const read = "cat ipns/local/d/file; wc -c < ipns/local/large";

test("content that a host has written is still there after a stop and a restart", { skip }, async (t) => {
  const { fixture, mount, other } = await two(t);
  await mount();
  await fixture.shell(write);
  await fixture.close();
  const garbage = await loose(other);
  assert.ok((await collect(other)).includes(String(garbage)));
  await mount();
  assert.equal(await fixture.shell(read), "kept\n700000\n");
});

test("content of a closed file is not lost when the host loses its session", {
  skip,
}, async (t) => {
  const { store, fixture, mount, other } = await two(t);
  const node = await mount();
  await fixture.shell(write);
  const { rejoined } = shutOut(store, node);
  const garbage = await loose(other);
  assert.ok((await collect(other)).includes(String(garbage)));
  await rejoined();
  await node.mounts.mount(fixture);
  assert.equal(await fixture.shell(read), "kept\n700000\n");
});

test("a host that lost its session continues, and stores its directories again", {
  skip,
}, async (t) => {
  const { store, fixture, mount, other } = await two(t);
  const node = await mount();
  for (let round = 0; round < 2; round += 1) {
    // A listing stores the directories. They are not below any root until they are published.
    await fixture.shell(`mkdir -p ipns/local/d/${round}; echo ${round} > ipns/local/d/${round}/file; ls ipns/local/d`);
    await node.blocks.store.sync();
    const { rejoined } = shutOut(store, node);
    await collect(other);
    await rejoined();
  }
  await fixture.shell("echo last > ipns/local/last");
  const name = String(node.repo.identity.peerId);
  let published = "";
  await eventually("all of it is published", async () => {
    published = await node.names.resolve(name, { offline: true });
    return node.resolve(`${published}/last`, { offline: true }).catch(() => undefined);
  });
  await fixture.close();
  await mount();
  assert.equal(await fixture.shell("cat ipns/local/d/0/file ipns/local/d/1/file ipns/local/last"), "0\n1\nlast\n");
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

test("without the database existing content can be read, and writes fail", { skip }, async (t) => {
  const { store, fixture, mount } = await two(t);
  const node = await mount();
  await fixture.shell(write);
  // Everything is published, and the kernel's cache is empty.
  await node.mounts.unmount();
  await node.mounts.mount(fixture);
  await fixture.shell("ls ipns/local");
  store.log.available = false;
  assert.equal(await fixture.shell(read), "kept\n700000\n");
  await assert.rejects(fixture.shell("mkdir ipns/local/more"), /Input\/output error/);
  store.log.available = true;
  await fixture.shell("mkdir ipns/local/more");
});

test("trees of an earlier version, which only one host knows, are shared at the start", async (t) => {
  const { store, hostMetadata, fixture, other } = await two(t);
  const { cid } = await other.add("written by an earlier version", { pin: false });
  const trees = treesOf(hostMetadata);
  await trees.transaction((writer) => writer.put("KEY/files/root", cid.bytes));
  const open = () => openNode({ repo: fixture.repo, offline: true, stores: () => store.stores(t, hostMetadata) });
  const node = await open();
  assert.deepEqual(await trees.keys({ limit: 1 }), []);
  assert.deepEqual((await node.mounts.roots()).map(String), [String(cid)]);
  await node.close();
  const garbage = await loose(other);
  assert.deepEqual(await collect(other), [String(garbage)]);
  assert.ok(await other.lowLevel.blocks.find(cid));
});
