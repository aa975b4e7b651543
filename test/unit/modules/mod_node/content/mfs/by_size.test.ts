/** Tests directories of MFS that become sharded, and plain again, because of their size. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { putIntoTree, removeFromTree } from "#node/content/mfs/edit_tree.ts";
import { move } from "#node/content/mfs/operations.ts";
import { namespacePath } from "#node/content/mfs/path.ts";
import { cidOf, defaultCid } from "#node/content/unixfs/build.ts";
import { unixfsNode } from "#node/content/unixfs/node.ts";
import { TestNamespace } from "./test_namespace.ts";

const byLinks = (maxLinks: number, fanout?: number) => ({
  sharding: { sharded: { estimate: "links", threshold: 262_144, maxLinks }, fanout } as const,
});

async function form(mfs: TestNamespace, path: string): Promise<string> {
  const cid = await mfs.cid(path);
  const { unixfs } = unixfsNode(cid, await mfs.files.reader({})(cid)) ?? {};
  return unixfs?.type === "HAMTShard" ? `${unixfs.fanout} slots` : String(unixfs?.type);
}

test("a directory is sharded beyond the limit, and plain again at the limit", async () => {
  const mfs = new TestNamespace();
  const options = byLinks(2);
  await mfs.mkdir("/d");
  for (const name of ["a", "b"]) await mfs.write(`/d/${name}`, name, options);
  const plain = String(await mfs.cid("/d"));
  await mfs.write("/d/c", "c", options);
  assert.equal(await form(mfs, "/d"), "256 slots");
  const sharded = String(await mfs.cid("/d"));
  await mfs.rm("/d/c", options);
  assert.equal(String(await mfs.cid("/d")), plain);
  await mfs.write("/d/c", "c", options);
  assert.equal(String(await mfs.cid("/d")), sharded);
});

test("a call without sharding options does not change the form of a directory", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/d");
  for (const name of ["a", "b", "c"]) await mfs.write(`/d/${name}`, name);
  assert.equal(await form(mfs, "/d"), "Directory");
  await mfs.write("/d/e", "e", byLinks(2));
  assert.equal(await form(mfs, "/d"), "256 slots");
  for (const name of ["a", "b", "c"]) await mfs.rm(`/d/${name}`);
  assert.equal(await form(mfs, "/d"), "256 slots");
  await mfs.write("/d/f", "f", byLinks(2));
  await mfs.rm("/d/f", byLinks(2));
  assert.equal(await form(mfs, "/d"), "Directory");
});

test("form, mode and time survive a crash, even if the root was not stored since", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/d");
  await mfs.facts("/d", { mode: 0o700, mtime: { seconds: 1, nanoseconds: 2 } });
  for (const name of ["a", "b", "c"]) await mfs.write(`/d/${name}`, name, byLinks(2, 16));
  assert.equal(await form(mfs, "/d"), "16 slots");
  const sharded = String(await mfs.cid());
  mfs.crash();
  assert.equal(String(await mfs.cid()), sharded);
  await mfs.rm("/d/a", byLinks(2, 16));
  const plain = String(await mfs.cid());
  assert.equal(await form(mfs, "/d"), "Directory");
  mfs.crash();
  assert.equal(String(await mfs.cid()), plain);
  assert.equal((await mfs.stat("/d")).mode, 0o700);
});

test("with a limit by size, the form does not depend on the order of changes", async () => {
  const mfs = new TestNamespace();
  const sharded = { estimate: "block", threshold: 2000, maxLinks: 0 } as const;
  const options = { flush: false, sharding: { sharded } };
  const reference = new TestNamespace();
  await mfs.mkdir("/d");
  await reference.mkdir("/d");
  const name = (at: number) => `/d/${String(at).padStart(20, "0")}`;
  for (let at = 0; at < 60; at += 1) await mfs.write(name(at), "x", options);
  assert.equal(await form(mfs, "/d"), "256 slots");
  await mfs.files.commit({ whole: true });
  for (let at = 59; at >= 10; at -= 1) await mfs.rm(name(at), options);
  for (let at = 0; at < 10; at += 1) await reference.write(name(at), "x", { flush: false });
  assert.equal(String(await mfs.cid("/d")), String(await reference.cid("/d")));
});

test("a move can make the source directory plain, and shard the target directory", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/d");
  await mfs.mkdir("/e");
  for (const name of ["a", "b", "c"]) await mfs.write(`/d/${name}`, name, byLinks(2));
  for (const name of ["x", "y"]) await mfs.write(`/e/${name}`, name, byLinks(2));
  const how = { flush: true, ...byLinks(2) };
  await move(mfs.files, namespacePath("/d/c"), namespacePath("/e/c"), how);
  assert.deepEqual([await form(mfs, "/d"), await form(mfs, "/e")], ["Directory", "256 slots"]);
});

test("changes of a directory by its CID use the same limits", async () => {
  const mfs = new TestNamespace();
  const { blocks } = mfs;
  const read = mfs.files.reader({});
  const sharded = { estimate: "links", threshold: 262_144, maxLinks: 1 } as const;
  const bytes = Buffer.from("x");
  const leaf = { cid: await cidOf(0x55, bytes, defaultCid), size: 1 };
  await blocks.put([{ cid: leaf.cid, bytes }]);
  let root = await mfs.cid();
  const plain = root;
  for (const name of ["a", "b"]) root = await putIntoTree(root, leaf, { path: [name], read, blocks, sharded });
  assert.equal(unixfsNode(root, await read(root))?.unixfs.type, "HAMTShard");
  for (const name of ["a", "b"]) root = await removeFromTree(root, { path: [name], read, blocks, sharded });
  assert.equal(String(root), String(plain));
});
