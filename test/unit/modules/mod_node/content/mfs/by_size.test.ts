/** Directories of the namespace that are sharded by their size, in both directions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { putIntoTree, removeFromTree } from "#node/content/mfs/edit_tree.ts";
import { move } from "#node/content/mfs/operations.ts";
import { namespacePath } from "#node/content/mfs/path.ts";
import { cidOf, defaultCid } from "#node/content/unixfs/build.ts";
import { unixfsNode } from "#node/content/unixfs/node.ts";
import { Place } from "./place.ts";

const byLinks = (maxLinks: number, fanout?: number) => ({
  sharding: { sharded: { estimate: "links", threshold: 262_144, maxLinks }, fanout } as const,
});

async function form(place: Place, path: string): Promise<string> {
  const cid = await place.cid(path);
  const { unixfs } = unixfsNode(cid, await place.files.reader({})(cid)) ?? {};
  return unixfs?.type === "HAMTShard" ? `${unixfs.fanout} slots` : String(unixfs?.type);
}

test("a directory is sharded beyond the limit, and plain again at it", async () => {
  const place = new Place();
  const options = byLinks(2);
  await place.mkdir("/d");
  for (const name of ["a", "b"]) await place.write(`/d/${name}`, name, options);
  const plain = String(await place.cid("/d"));
  await place.write("/d/c", "c", options);
  assert.equal(await form(place, "/d"), "256 slots");
  const sharded = String(await place.cid("/d"));
  await place.rm("/d/c", options);
  assert.equal(String(await place.cid("/d")), plain);
  await place.write("/d/c", "c", options);
  assert.equal(String(await place.cid("/d")), sharded);
});

test("a call that does not say it shards nothing, and leaves a shard what it is", async () => {
  const place = new Place();
  await place.mkdir("/d");
  for (const name of ["a", "b", "c"]) await place.write(`/d/${name}`, name);
  assert.equal(await form(place, "/d"), "Directory");
  await place.write("/d/e", "e", byLinks(2));
  assert.equal(await form(place, "/d"), "256 slots");
  for (const name of ["a", "b", "c"]) await place.rm(`/d/${name}`);
  assert.equal(await form(place, "/d"), "256 slots");
  await place.write("/d/f", "f", byLinks(2));
  await place.rm("/d/f", byLinks(2));
  assert.equal(await form(place, "/d"), "Directory");
});

test("the form, the mode and the time last through a crash, also where the root was not stored since", async () => {
  const place = new Place();
  await place.mkdir("/d");
  await place.facts("/d", { mode: 0o700, mtime: { seconds: 1, nanoseconds: 2 } });
  for (const name of ["a", "b", "c"]) await place.write(`/d/${name}`, name, byLinks(2, 16));
  assert.equal(await form(place, "/d"), "16 slots");
  const sharded = String(await place.cid());
  place.crash();
  assert.equal(String(await place.cid()), sharded);
  await place.rm("/d/a", byLinks(2, 16));
  const plain = String(await place.cid());
  assert.equal(await form(place, "/d"), "Directory");
  place.crash();
  assert.equal(String(await place.cid()), plain);
  assert.equal((await place.stat("/d")).mode, 0o700);
});

test("by size the form does not depend on the way there", async () => {
  const place = new Place();
  const sharded = { estimate: "block", threshold: 2000, maxLinks: 0 } as const;
  const options = { flush: false, sharding: { sharded } };
  const reference = new Place();
  await place.mkdir("/d");
  await reference.mkdir("/d");
  const name = (at: number) => `/d/${String(at).padStart(20, "0")}`;
  for (let at = 0; at < 60; at += 1) await place.write(name(at), "x", options);
  assert.equal(await form(place, "/d"), "256 slots");
  await place.files.commit({ whole: true });
  for (let at = 59; at >= 10; at -= 1) await place.rm(name(at), options);
  for (let at = 0; at < 10; at += 1) await reference.write(name(at), "x", { flush: false });
  assert.equal(String(await place.cid("/d")), String(await reference.cid("/d")));
});

test("moving an entry out makes the directory plain, and into one may shard it", async () => {
  const place = new Place();
  await place.mkdir("/d");
  await place.mkdir("/e");
  for (const name of ["a", "b", "c"]) await place.write(`/d/${name}`, name, byLinks(2));
  for (const name of ["x", "y"]) await place.write(`/e/${name}`, name, byLinks(2));
  const how = { flush: true, ...byLinks(2) };
  await move(place.files, namespacePath("/d/c"), namespacePath("/e/c"), how);
  assert.deepEqual([await form(place, "/d"), await form(place, "/e")], ["Directory", "256 slots"]);
});

test("edits of a directory that is named by its CID go by the same limits", async () => {
  const place = new Place();
  const { blocks } = place;
  const read = place.files.reader({});
  const sharded = { estimate: "links", threshold: 262_144, maxLinks: 1 } as const;
  const bytes = Buffer.from("x");
  const leaf = { cid: await cidOf(0x55, bytes, defaultCid), size: 1 };
  await blocks.put([{ cid: leaf.cid, bytes }]);
  let root = await place.cid();
  const plain = root;
  for (const name of ["a", "b"]) root = await putIntoTree(root, leaf, { path: [name], read, blocks, sharded });
  assert.equal(unixfsNode(root, await read(root))?.unixfs.type, "HAMTShard");
  for (const name of ["a", "b"]) root = await removeFromTree(root, { path: [name], read, blocks, sharded });
  assert.equal(String(root), String(plain));
});
