import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createNode, type FilestoreObject, type Node } from "modhost/node";
import { emptyFolder } from "../storage/repo/support.ts";
import { memoryNode } from "./support.ts";

const content = "content that stands elsewhere";

/** A node that may refer to files below its folder, and to URLs. */
async function referringNode(t: TestContext): Promise<{ readonly node: Node; readonly folder: string }> {
  const folder = await emptyFolder(t);
  const repo = join(folder, "repo");
  const made = await createNode({ repo, offline: true });
  for (const name of ["Filestore", "Urlstore"]) {
    await made.lowLevel.repo.config.set(`Experimental.${name}Enabled`, () => true);
  }
  await made.close();
  const node = await createNode({ repo, offline: true });
  t.after(() => node.close());
  return { node, folder };
}

const listed = async (objects: AsyncIterable<FilestoreObject>) =>
  (await Array.fromAsync(objects)).map(({ key, ...facts }) => ({ ...facts, key: String(key) }));

async function* referring(backing: string | undefined) {
  yield {
    path: "f",
    kind: "file",
    body: (async function* () {
      yield Buffer.from(content);
    })(),
    backing,
  } as const;
}

test("blocks of the filestore are listed and checked against their files", async (t) => {
  const { node, folder } = await referringNode(t);
  await mkdir(join(folder, "files"));
  const file = join(folder, "files/f");
  await writeFile(file, content);
  const [added] = await Array.fromAsync(node.addTree(referring(file), { nocopy: true }));
  const key = added?.built?.cid;
  assert.ok(key);
  const good = { status: "ok", errorMsg: "", key: String(key), filePath: "files/f", offset: 0, size: content.length };
  assert.deepEqual(await listed(node.filestore.ls()), [good]);
  assert.deepEqual(await listed(node.filestore.ls(key)), [good]);
  assert.deepEqual(await listed(node.filestore.verify([], { fileOrder: true })), [good]);
  assert.deepEqual(await Array.fromAsync(node.filestore.dups()), []);
  await node.add({ path: "f", content }, { rawLeaves: true });
  assert.deepEqual((await Array.fromAsync(node.filestore.dups())).map(String), [String(key)]);
  await rm(file);
  const [gone, none] = await Array.fromAsync(node.filestore.verify([String(key), "none"]));
  assert.deepEqual([gone?.status, none?.status, none?.key], ["fileNotFound", "otherError", undefined]);
  await assert.rejects(Array.fromAsync(node.addTree(referring(undefined), { nocopy: true })), {
    message: "missing file path or URL, can't create filestore reference",
  });
});

test("the content of a URL is added without storing its bytes", async (t) => {
  const server = createServer((request, response) => {
    if (request.url !== "/file") response.writeHead(404).end();
    else response.setHeader("content-length", content.length).end(content);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { node } = await referringNode(t);
  const { key, size } = await node.urlstore.add(`${url}/file`);
  assert.equal(size, content.length);
  const [listed] = await Array.fromAsync(node.filestore.ls(key));
  assert.equal(listed?.filePath, `${url}/file`);
  await assert.rejects(node.urlstore.add(`${url}/none`), { message: `got non-2XX status code 404: ${url}/none` });
  await assert.rejects(node.urlstore.add("file"), { message: "unsupported url syntax: file" });
});

test("references are refused unless the experiments are enabled", async (t) => {
  const node = await memoryNode(t);
  await assert.rejects(node.urlstore.add("http://127.0.0.1/"), { code: "REFERENCES_OFF" });
  await assert.rejects(Array.fromAsync(node.filestore.ls()), { code: "FILESTORE_OFF" });
});

test("a tar archive is stored as a tree and exported unchanged", async (t) => {
  const node = await memoryNode(t);
  const tree = (await Array.fromAsync(node.addAll([{ path: "t/a", content: "a" }]))).at(-1)?.cid;
  assert.ok(tree);
  const archive = Buffer.concat(await Array.fromAsync(node.get(tree)));
  const { cid, size } = await node.tar.add(archive);
  assert.ok(size > 0);
  const again = Buffer.concat(await Array.fromAsync(node.tar.cat(cid)));
  // Returns all entries without the empty blocks that end an archive.
  assert.deepEqual(again, archive.subarray(0, archive.length - 1024));
  await assert.rejects(Array.fromAsync(node.tar.cat(tree)), { name: "NodeError" });
});

test("the older listing distinguishes files from directories", async (t) => {
  const node = await memoryNode(t);
  const all = await Array.fromAsync(
    node.addAll([
      { path: "d/file", content: "12345" },
      { path: "d/sub/x", content: "1" },
    ]),
  );
  const root = all.at(-1)?.cid;
  const [file] = all;
  assert.ok(root && file);
  const listed = await node.file.ls([root, `${root}/file`]);
  assert.deepEqual(Object.values(listed.arguments).map(String).sort(), [String(root), String(file.cid)].sort());
  const { type, size, links } = listed.objects[String(root)] ?? {};
  assert.deepEqual(
    [type, size, links?.map((link) => [link.name, link.type])],
    [
      "Directory",
      0,
      [
        ["file", "File"],
        ["sub", "Directory"],
      ],
    ],
  );
  const { cid, ...facts } = listed.objects[String(file.cid)] ?? {};
  assert.equal(String(cid), String(file.cid));
  assert.deepEqual(facts, { size: 5, type: "File", links: null });
  const wide = await node.add({ path: "raw", content: "r" }, { rawLeaves: true });
  await assert.rejects(node.file.ls(wide.cid), { message: "expected protobuf dag node" });
});

test("a timeout ends a call", async (t) => {
  const node = await memoryNode(t);
  await assert.rejects(node.cat("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn", { timeout: 0 }).opened, {
    message: /context deadline exceeded/,
  });
});
