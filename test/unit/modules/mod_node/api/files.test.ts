import assert from "node:assert/strict";
import { test } from "node:test";
import { createNode } from "modhost/node";
import { CID } from "multiformats/cid";
import { emptyFolder } from "../storage/repo/support.ts";
import { memoryNode } from "./support.ts";

const text = async (pieces: AsyncIterable<Uint8Array>) => Buffer.concat(await Array.fromAsync(pieces)).toString();

test("a file is written from every form of content, and read back by range", async (t) => {
  const { files } = await memoryNode(t);
  const halves = [Buffer.from("hello "), Buffer.from("world")];
  const sources = [
    "hello world",
    Buffer.from("hello world"),
    new Blob(["hello world"]),
    halves,
    new Blob(["hello world"]).stream(),
    async () => halves,
  ];
  for (const [at, source] of sources.entries()) {
    await files.write(`/dir/${at}`, source, { create: true, parents: true });
    assert.equal(await text(files.read(`/dir/${at}`, { offset: 6, length: 3 })), "wor");
  }
  const whole = files.read("/dir/0");
  await whole.opened;
  assert.equal(await text(whole), "hello world");
});

test("a directory is listed with CIDs or only by names, and a file is its own only entry", async (t) => {
  const { files } = await memoryNode(t);
  await files.write("/a/file", "x".repeat(5), { create: true, parents: true });
  await files.mkdir("/a/sub");
  const [file, sub] = await Array.fromAsync(files.ls("/a"));
  assert.deepEqual([file?.name, file?.type, file?.size], ["file", "file", 5]);
  assert.deepEqual([sub?.name, sub?.type, sub?.size], ["sub", "directory", 0]);
  assert.ok(file?.cid instanceof CID);
  assert.deepEqual(await Array.fromAsync(files.ls("/a", { long: false })), [
    { name: "file", type: "file", size: 0 },
    { name: "sub", type: "file", size: 0 },
  ]);
  const { type, entries } = await files.listing("/a/file");
  assert.deepEqual([type, await Array.fromAsync(entries)], ["file", [file]]);
});

test("stat describes a path, and on request how much of it is stored locally", async (t) => {
  const { files } = await memoryNode(t);
  await files.write("/a/file", "12345", { create: true, parents: true, cidVersion: 1 });
  const stat = await files.stat("/a/file");
  assert.deepEqual([stat.size, stat.blocks, stat.type, stat.withLocality], [5, 1, "file", false]);
  assert.equal(stat.cid.version, 1);
  const { local, sizeLocal, withLocality } = await files.stat(stat.cid, { withLocal: true });
  assert.deepEqual([withLocality, local, sizeLocal], [true, true, stat.cumulativeSize]);
  assert.deepEqual(await files.stat(stat.cid), stat);
});

test("several sources are copied, moved and removed by one call", async (t) => {
  const { files } = await memoryNode(t);
  await files.write("/a", "a", { create: true });
  await files.write("/b", "b", { create: true });
  const { cid } = await files.stat("/a");
  await files.mkdir("/into");
  await files.mkdir("/again");
  await files.cp([cid, "/b"], "/into/");
  const names = async (path: string) => (await Array.fromAsync(files.ls(path))).map(({ name }) => name);
  assert.deepEqual((await names("/into")).sort(), ["b", String(cid)].sort());
  await files.mv([`/into/${cid}`, "/into/b"], "/again");
  assert.deepEqual([(await names("/into")).length, (await names("/again")).length], [0, 2]);
  await files.rm(["/again", "/into", "/a"], { recursive: true });
  assert.deepEqual(await names("/"), ["b"]);
  assert.ok((await files.flush()).equals((await files.stat("/")).cid));
});

test("failures have the reference's texts, and a call ends with its signal", async (t) => {
  const { files } = await memoryNode(t);
  await assert.rejects(files.stat("/none"), { name: "NodeError", message: "file does not exist" });
  await assert.rejects(files.mkdir("relative"), { message: "paths must start with a leading slash" });
  await assert.rejects(Array.fromAsync(files.read("/none")), { message: "file does not exist" });
  await assert.rejects(files.chcid("/", { cidVersion: 7 }), { message: "unknown CID version: 7" });
  await files.write("/f", "abc", { create: true });
  await assert.rejects(files.read("/f", { offset: 4 }).opened, { message: "offset was past end of file (4 > 3)" });
  await assert.rejects(files.mkdir("/d", { signal: AbortSignal.abort(new Error("enough")) }), { message: "enough" });
});

test("a copy replaces a file only with force, never a directory, and creates parents only if it succeeds", async (t) => {
  const { files, add } = await memoryNode(t);
  const { cid } = await add("new");
  await files.write("/old", "old", { create: true });
  await files.mkdir("/folder");
  await assert.rejects(files.cp(`/ipfs/${cid}`, "/old"), /directory already has entry by that name/);
  await assert.rejects(
    files.cp(`/ipfs/${cid}`, "/no/where"),
    /cannot put node in path \/no\/where: file does not exist/,
  );
  await assert.rejects(files.cp(`/ipfs/${cid}`, "/folder", { force: true }), /cannot unlink existing file: not a file/);
  await assert.rejects(files.cp("/missing", "/made/for/it", { parents: true }), /file does not exist/);
  await files.cp(`/ipfs/${cid}`, "/old", { force: true });
  await files.cp(`/ipfs/${cid}`, "/deep/er/copy", { parents: true, force: true });
  assert.deepEqual([await text(files.read("/old")), await text(files.read("/deep/er/copy"))], ["new", "new"]);
  const names = await Array.fromAsync(files.ls("/"), ({ name }) => name);
  assert.deepEqual(names, ["deep", "folder", "old"]);
});

test("the root gets the CID form that Import had at the start, with its next change or its next lookup", async (t) => {
  const repo = await emptyFolder(t);
  const rootAt = async (form: Readonly<Record<string, unknown>>) => {
    await using node = await createNode({ repo, offline: true });
    const root = await node.files.flush("/");
    for (const [key, value] of Object.entries(form)) await node.config.set(key, value);
    await node.files.mkdir(`/made-from-${root}`);
    return [root.version, (await node.files.flush("/")).version];
  };
  assert.deepEqual(await rootAt({ "Import.CidVersion": 1 }), [0, 0]);
  assert.deepEqual(await rootAt({ "Import.CidVersion": 0 }), [1, 1]);
  assert.deepEqual(await rootAt({}), [0, 0]);
});
