import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openNode } from "#node/node/open.ts";
import { type BodyContent, contentOf } from "#test/contract/vectors/content.ts";
import { readVectors } from "#test/contract/vectors/plan.ts";
import { noise } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { type RpcHost, startRpc } from "./support.ts";

const large = noise(300_000, 1);
const web = createServer((request, response) => {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  if (request.url === "/large" && from !== undefined) {
    return response.writeHead(206).end(large.subarray(Number(from), Number(to) + 1));
  }
  if (request.url === "/large") return response.setHeader("content-length", large.length).end(large);
  if (request.url === "/chunked") {
    response.flushHeaders();
    return response.end("chunked\n");
  }
  return response.writeHead(503).end();
});

let host: RpcHost;
let url = "";

before(async () => {
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  host = await startRpc({}, { prepare: (folder) => prepared(folder, "Filestore", "Urlstore") });
});
after(async () => {
  await host.stop();
  web.close();
});

/** Creates a repo with these experiments enabled. */
async function prepared(folder: string, ...experiments: readonly string[]): Promise<void> {
  const node = await openNode({ repo: join(folder, "data/repo"), profile: "test" });
  for (const name of experiments) await node.repo.config.set(`Experimental.${name}Enabled`, () => true);
  await node.close();
}

interface Added {
  readonly status: number;
  readonly lines: readonly { readonly Hash?: string; readonly Message?: string }[];
}

interface Sent {
  readonly name: string;
  readonly path: string | undefined;
  readonly content: string | Uint8Array;
}

const add = (on: RpcHost, path: string | undefined, content: string | Uint8Array) =>
  addAll(on, [{ name: "f", path, content }]);

async function addAll(on: RpcHost, files: readonly Sent[]): Promise<Added> {
  const parts = files.flatMap(({ name, path, content }) => {
    const named = path === undefined ? "" : `Abspath: ${path}\r\n`;
    const head = `--b\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n${named}\r\n`;
    return [Buffer.from(head), Buffer.from(content), Buffer.from("\r\n")];
  });
  const reply = await fetch(`http://127.0.0.1:${on.http}/api/v0/add?nocopy=true`, {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=b", connection: "close" },
    body: Buffer.concat([...parts, Buffer.from("--b--\r\n")]),
  });
  const lines = (await reply.text()).split("\n").filter((line) => line !== "");
  return { status: reply.status, lines: lines.map((line) => JSON.parse(line)) };
}

const keys = ({ lines }: { lines: readonly unknown[] }) =>
  (lines as { Key: { "/": string } }[]).map(({ Key }) => Key["/"]);

test("content added without a copy survives a collection while it is pinned, and is removed afterwards", async () => {
  const path = join(host.folder, "data/kept.bin");
  await writeFile(path, large);
  const { lines } = await add(host, path, large);
  const root = lines.at(-1)?.Hash as string;
  const leaves = keys(await host.call("filestore/ls?file-order=true"));
  assert.equal(leaves.length, 2);
  await host.call("repo/gc");
  assert.deepEqual(keys(await host.call("filestore/ls?file-order=true")), leaves);
  assert.equal((await host.call(`cat?arg=${root}&length=10`)).status, 200);
  await host.call(`pin/rm?arg=${root}`);
  const collected = keys(await host.call("repo/gc"));
  assert.deepEqual([...collected].sort(), [root, ...leaves].sort());
  assert.deepEqual((await host.call("filestore/ls")).lines, []);
});

test("a folder that is added without copies has the CID that go-ipfs computes, and reads back unchanged", async () => {
  const vector = readVectors("storage").find(({ id }) => id === "filestore-dir");
  const tree = vector?.input?.somedir as { dir: Record<string, { file: BodyContent }> } | undefined;
  assert.ok(tree);
  const folder = join(host.folder, "data/süßes");
  await mkdir(folder);
  const files = Object.entries(tree.dir).map(([name, { file }]) => ({
    name: `somedir%2F${name}`,
    path: join(folder, name),
    content: contentOf(file),
  }));
  for (const { path, content } of files) await writeFile(path, content);
  const { lines } = await addAll(host, files);
  const root = lines.at(-1)?.Hash;
  assert.equal(root, vector?.expect?.cid);
  for (const { name, content } of files) {
    const url = `http://127.0.0.1:${host.http}/api/v0/cat?arg=${root}/${name.slice("somedir%2F".length)}`;
    const reply = await fetch(url, { method: "POST", headers: { connection: "close" } });
    assert.ok(content.equals(Buffer.from(await reply.arrayBuffer())));
  }
  await host.call(`pin/rm?arg=${root}`);
  await host.call("repo/gc");
});

test("a path that is missing, unnamed or outside is refused before the first line", async () => {
  const message = async (path: string | undefined, content = "x") => {
    const { status, lines } = await add(host, path, content);
    return [status, lines[0]?.Message];
  };
  assert.deepEqual(await message(undefined), [500, "missing file path or URL, can't create filestore reference"]);
  const root = join(host.folder, "data");
  assert.deepEqual(await message("/etc/x"), [500, `cannot add filestore references outside ipfs root (${root})`]);
  const [status, reason] = await message(join(root, "gone"));
  assert.equal(status, 500);
  assert.match(String(reason), /^failed to get block for bafk\w+: open .*\/gone: no such file or directory$/);
  assert.deepEqual((await host.call("filestore/ls")).lines, []);
});

test("text lists have columns, and show errors", async () => {
  const path = join(host.folder, "data/a.txt");
  await writeFile(path, "first");
  const cid = (await add(host, path, "first")).lines[0]?.Hash as string;
  const text = async (call: string) => (await host.call(`${call}encoding=text`)).text;
  const line = `${cid}      5 a.txt 0\n`.replace(cid, cid.padEnd(50));
  assert.equal(await text("filestore/ls?"), line);
  assert.equal(await text("filestore/verify?"), `ok      ${line}`);
  await writeFile(path, "other");
  assert.equal(await text("filestore/verify?"), `changed ${line}`);
  await rm(path);
  assert.equal(await text("filestore/verify?"), `no-file ${line}`);
  const absent = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku";
  assert.equal(await text(`filestore/verify?arg=${absent}&`), `missing ${absent}\n`);
  assert.match(await text("filestore/ls?arg=bad&"), /^bad: /);
  assert.deepEqual(await host.failure(`cat?arg=${cid}`), [500, `open ${path}: no such file or directory`]);
  await host.call(`pin/rm?arg=${cid}`);
  assert.deepEqual((await host.value(`block/rm?arg=${cid}`)).Error, undefined);
});

test("block/put and fscache do not store blocks of the filestore; a plain add does", async () => {
  const path = join(host.folder, "data/b.txt");
  await writeFile(path, "twice");
  const cid = (await add(host, path, "twice")).lines[0]?.Hash;
  const dups = async () => (await host.call("filestore/dups?encoding=text")).text;
  await host.call("block/put?format=raw", { f: "twice" });
  await host.call("add?raw-leaves=true&fscache=true", { f: "twice" });
  assert.equal(await dups(), "");
  await host.call("add?raw-leaves=true", { f: "twice" });
  assert.equal(await dups(), `${cid}\n`);
});

test("the content of a URL is added by reference, with the length that the server reports", async () => {
  const { Key, Size } = await host.value(`urlstore/add?arg=${url}/large`);
  assert.equal(Size, large.length);
  const whole = await fetch(`http://127.0.0.1:${host.http}/api/v0/cat?arg=${Key}`, { method: "POST" });
  assert.deepEqual(new Uint8Array(await whole.arrayBuffer()), large);
  assert.deepEqual(await host.value(`pin/ls?arg=${Key}&type=recursive`).then(({ Keys }) => Keys), {
    [String(Key)]: { Type: "recursive" },
  });
  const chunked = await host.value(`urlstore/add?arg=${url}/chunked&pin=false`);
  assert.equal(chunked.Size, -1);
  assert.equal((await host.call(`cat?arg=${chunked.Key}`)).text, "chunked\n");
  assert.equal((await host.call(`pin/ls?arg=${chunked.Key}`)).status, 500);
  assert.equal((await host.call(`urlstore/add?arg=${url}/chunked&encoding=text`)).text, `${chunked.Key}\n`);
  assert.deepEqual(await host.failure(`urlstore/add?arg=${url}/gone`), [
    500,
    `got non-2XX status code 503: ${url}/gone`,
  ]);
  assert.deepEqual(await host.failure("urlstore/add?arg=HTTP://x"), [500, "unsupported url syntax: HTTP://x"]);
});

test("without the experiments, calls fail with the messages of go-ipfs", async () => {
  await using plain = await startRpc();
  const off = "either the filestore or the urlstore must be enabled to use nocopy, see: https://git.io/vNItf";
  assert.equal((await add(plain, "/x", "x")).lines[0]?.Message, off);
  assert.deepEqual(await plain.failure("urlstore/add?arg=http://127.0.0.1:1/"), [500, off]);
  for (const name of ["ls", "ls?arg=bad", "verify", "dups"]) {
    assert.deepEqual(await plain.failure(`filestore/${name}`), [
      500,
      "filestore is not enabled, see https://git.io/vNItf",
    ]);
  }
  await using files = await startRpc({}, { prepare: (folder) => prepared(folder, "Filestore") });
  assert.deepEqual(await files.failure(`urlstore/add?arg=${url}/large`), [500, "urlstore is not enabled"]);
});

test("at the level 0.43, blocks of changed files are removed if requested, and no others", async () => {
  const now = await startRpc({ api_level: "0.43" }, { prepare: (folder) => prepared(folder, "Filestore") });
  try {
    const [good, bad] = ["good", "bad"].map((name) => join(now.folder, "data", name)) as [string, string];
    for (const path of [good, bad]) {
      await writeFile(path, path);
      await add(now, path, path);
    }
    await writeFile(bad, "otherwise");
    const shown = async (query: string) =>
      ((await now.call(`filestore/verify${query}`)).lines as { Status: number; FilePath: string }[])
        .map(({ Status, FilePath }) => `${FilePath} ${Status}`)
        .sort();
    assert.deepEqual(await shown("?remove-bad-blocks=false"), ["bad 12", "good 0"]);
    assert.deepEqual(await shown("?remove-bad-blocks=true"), ["bad 12", "good 0"]);
    assert.deepEqual(await shown(""), ["good 0"]);
    const { text } = await now.call("filestore/verify?remove-bad-blocks=true&encoding=text");
    assert.match(text, /^ok +bafk\w+ +\d+ good 0 keep\n$/);
  } finally {
    await now.stop();
  }
});
