import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { type Built, defaultCid } from "#node/content/unixfs/build.ts";
import { buildDirectory } from "#node/content/unixfs/directory.ts";
import { type BuiltDirectory, DirectoryTree } from "#node/content/unixfs/directory_tree.ts";
import { entries } from "#node/content/unixfs/list.ts";
import { type UnixfsNode, unixfsNode } from "#node/content/unixfs/node.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-tree-"));
});
after(() => rm(folder, { recursive: true, force: true }));

/** Returns a CID and size as of a built file. */
function built(name: string): Built {
  const digest = createHash("sha256").update(name).digest();
  return { cid: CID.createV0(create(0x12, digest) as never), size: name.length ** 7 };
}

const shuffled = (count: number) => Array.from({ length: count }, (_, at) => `file ${(at * 7919) % count}`);

/** Returns blocks by CID, and the built directories in order. */
async function build(tree: DirectoryTree, path: string, sharded: boolean) {
  const blocks = new Map<string, Uint8Array>();
  const found: BuiltDirectory[] = [];
  const sink = ({ cid, bytes }: { cid: CID; bytes: Uint8Array }) => {
    blocks.set(cid.toString(), bytes);
    return undefined;
  };
  for await (const directory of tree.build(path, { ...defaultCid, sharded }, sink)) found.push(directory);
  return { blocks, found };
}

for (const sharded of [false, true]) {
  test(`a ${sharded ? "sharded" : "plain"} directory whose entries were on the disk equals one that was built in memory`, async () => {
    const tree = new DirectoryTree(sharded, folder);
    const names = shuffled(10_000);
    for (const name of names) await tree.put(`d/${name}`, built(name));
    const { blocks, found } = await build(tree, "d", sharded);
    const links = names.map((name) => ({ name, ...built(name) }));
    const whole = await buildDirectory(links, { ...defaultCid, sharded }, () => undefined);
    assert.deepEqual(
      found.map(({ path, last }) => [path, last]),
      [["d", true]],
    );
    const [{ built: made } = { built: undefined }] = found;
    assert.equal(String(made?.cid), String(whole.cid));
    assert.equal(made?.size, whole.size);
    const read = async (cid: CID) => blocks.get(cid.toString()) as Uint8Array;
    const root = unixfsNode(whole.cid, await read(whole.cid)) as UnixfsNode;
    const listed = new Map<string, string>();
    for await (const { name, cid } of entries(root, read)) listed.set(name, String(cid));
    assert.deepEqual(listed, new Map(links.map(({ name, cid }) => [name, String(cid)])), "every entry is found again");
    await tree.clear();
    assert.deepEqual(await readdir(folder), []);
  });

  test(`thousands of ${sharded ? "sharded" : "plain"} directories are built by name, children first`, async () => {
    const tree = new DirectoryTree(sharded, folder);
    // Breadth first, so that no two entries in a row have the same directory.
    for (const file of ["x", "y"]) {
      for (const name of shuffled(3000)) await tree.put(`d/${name}/in/${file}`, built(name + file));
    }
    const { found } = await build(tree, "d", sharded);
    const inner = shuffled(3000)
      .toSorted()
      .flatMap((name) => [`d/${name}/in`, `d/${name}`]);
    assert.deepEqual(
      found.map(({ path }) => path),
      [...inner, "d"],
    );
    const settings = { ...defaultCid, sharded };
    const nothing = () => undefined;
    const links = [];
    for (const name of shuffled(3000)) {
      const leaves = ["x", "y"].map((file) => ({ name: file, ...built(name + file) }));
      const below = await buildDirectory(leaves, settings, nothing);
      links.push({ name, ...(await buildDirectory([{ name: "in", ...below }], settings, nothing)) });
    }
    const whole = await buildDirectory(links, settings, nothing);
    assert.equal(String(found.at(-1)?.built.cid), String(whole.cid));
    await tree.clear();
  });
}

test("a name that exists is rejected at once, even if its entry is on the disk", async () => {
  const tree = new DirectoryTree(true, folder);
  for (const name of shuffled(5000)) await tree.put(`d/${name}`, built(name));
  await tree.open("d/folder");
  for (const name of shuffled(5000)) await tree.put(`d/other/${name}`, built(name));
  const message = "directory already has entry by that name";
  await assert.rejects(tree.put("d/file 1", built("x")), { message });
  await assert.rejects(tree.put("d/folder", built("x")), { message });
  await assert.rejects(tree.open("d/file 1/below"), { message: "file already exists" });
  await tree.put("d/file 5000", built("x"));
  await tree.clear();
});

test("cids lists all entries of the tree, and nothing for an empty tree", async () => {
  const tree = new DirectoryTree(false, folder);
  for (const name of shuffled(9000)) await tree.put(`d/${name}`, built(name));
  const cids = new Set(Array.from(tree.cids(), String));
  assert.deepEqual(cids, new Set(shuffled(9000).map((name) => String(built(name).cid))));
  await tree.clear();
  assert.deepEqual([...tree.cids()], []);
});

test("a directory without entries equals the empty directory, sharded or not", async () => {
  for (const sharded of [false, true]) {
    const tree = new DirectoryTree(sharded, folder);
    await tree.open("d");
    const { found } = await build(tree, "d", sharded);
    assert.equal(String(found[0]?.built.cid), "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
    await tree.clear();
  }
});
