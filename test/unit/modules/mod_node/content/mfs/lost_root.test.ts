import assert from "node:assert/strict";
import { test } from "node:test";
import { Place } from "./place.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

/** A place after a restart that finds the block of the root gone, with a change in the journal. */
async function lost() {
  const place = new Place();
  await place.write("/kept/f", "content", { parents: true });
  await place.files.close();
  const root = await place.cid();
  const kept = await place.cid("/kept");
  place.crash();
  await place.write("/later", "more");
  await place.store.delete([root]);
  place.crash();
  return { place, root, kept };
}

test("files whose root is lost say so at every call, with the remedy, and a collection removes nothing", async () => {
  const { place, root } = await lost();
  const told = {
    code: "FILES_ROOT_LOST",
    message: new RegExp(`since ${root} is lost: merkledag: not found.*modhost node files chroot --confirm \\[CID\\]`),
  };
  for (const call of [() => place.cid(), () => place.ls("/"), () => place.read("/kept/f"), () => place.mkdir("/new")]) {
    await assert.rejects(call, told);
  }
  await assert.rejects(place.files.roots(), told);
  assert.equal(await place.blocks.find(root), undefined);
});

test("a lost root is replaced by an empty directory, or by one that is here", async () => {
  const { place, root, kept } = await lost();
  const empty = await place.files.replaceRoot();
  assert.deepEqual([String(empty.before), String(empty.after), empty.dropped], [String(root), emptyDirectory, 1]);
  assert.deepEqual(await place.ls(), []);
  place.crash();
  const restored = await place.files.replaceRoot(kept);
  assert.deepEqual([String(restored.before), String(restored.after)], [emptyDirectory, String(kept)]);
  assert.equal(await place.read("/f"), "content");
  await place.write("/new", "x");
  place.crash();
  assert.deepEqual(await place.ls(), ["f", "new"]);
});

test("what is not here, or no directory, does not become the root", async () => {
  const { place, root } = await lost();
  await assert.rejects(place.files.replaceRoot(root), { message: `${root} is not in this repo` });
  const twin = new Place(place.store);
  await twin.write("/file", "content");
  const file = await twin.cid("/file");
  await assert.rejects(place.files.replaceRoot(file), { message: `${file} is not a directory` });
});
