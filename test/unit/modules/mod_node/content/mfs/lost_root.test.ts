import assert from "node:assert/strict";
import { test } from "node:test";
import { TestNamespace } from "./test_namespace.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

/** A namespace after a restart. The block of the root is missing, and the journal has a change. */
async function lost() {
  const mfs = new TestNamespace();
  await mfs.write("/kept/f", "content", { parents: true });
  await mfs.files.close();
  const root = await mfs.cid();
  const directory = await mfs.cid("/kept");
  mfs.crash();
  await mfs.write("/later", "more");
  await mfs.store.delete([root]);
  mfs.crash();
  return { mfs, root, directory };
}

test("every call fails with the remedy if the root of the files is lost, and a collection removes nothing", async () => {
  const { mfs, root } = await lost();
  const failure = {
    code: "FILES_ROOT_LOST",
    message: new RegExp(`since ${root} is lost: merkledag: not found.*modhost node files chroot --confirm \\[CID\\]`),
  };
  for (const call of [() => mfs.cid(), () => mfs.ls("/"), () => mfs.read("/kept/f"), () => mfs.mkdir("/new")]) {
    await assert.rejects(call, failure);
  }
  await assert.rejects(mfs.files.roots(), failure);
  assert.equal(await mfs.blocks.find(root), undefined);
});

test("a lost root can be replaced by an empty directory, or by one on this machine", async () => {
  const { mfs, root, directory } = await lost();
  const empty = await mfs.files.replaceRoot();
  assert.deepEqual([String(empty.before), String(empty.after), empty.dropped], [String(root), emptyDirectory, 1]);
  assert.deepEqual(await mfs.ls(), []);
  mfs.crash();
  const restored = await mfs.files.replaceRoot(directory);
  assert.deepEqual([String(restored.before), String(restored.after)], [emptyDirectory, String(directory)]);
  assert.equal(await mfs.read("/f"), "content");
  await mfs.write("/new", "x");
  mfs.crash();
  assert.deepEqual(await mfs.ls(), ["f", "new"]);
});

test("a missing block, or a file, cannot become the root", async () => {
  const { mfs, root } = await lost();
  await assert.rejects(mfs.files.replaceRoot(root), { message: `${root} is not in this repo` });
  const twin = new TestNamespace(mfs.store);
  await twin.write("/file", "content");
  const file = await twin.cid("/file");
  await assert.rejects(mfs.files.replaceRoot(file), { message: `${file} is not a directory` });
});
