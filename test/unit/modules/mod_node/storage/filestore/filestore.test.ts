import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { Filestore } from "#node/storage/filestore/filestore.ts";
import { decodeReference, encodeReference, statuses } from "#node/storage/filestore/reference.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { blockContract } from "#test/unit/modules/mod_node/storage/blockstore/contract.ts";
import { contents, contentsOf, keysOf, noise, sample } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

blockContract(
  "filestore",
  async () => new Filestore(memoryBlocks(), memoryMetadata(), { root: "/", files: true, urls: true }),
);

async function opened(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), "modhost-filestore-"));
  t.after(() => rm(root, { recursive: true }));
  const main = memoryBlocks();
  const metadata = memoryMetadata();
  const store = new Filestore(main, metadata, { root, files: true, urls: true });
  /** A block in a file, after `offset` other bytes. */
  const written = async (path: string, seed: number, offset = 0) => {
    const block = sample(seed, 200);
    await writeFile(join(root, path), Buffer.concat([noise(offset, 99), block.bytes, noise(50, 98)]));
    return { ...block, at: { path: join(root, path), offset } };
  };
  return { root, main, metadata, store, written };
}

async function serving(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a block with an external location is read from there, and its bytes are not stored", async (t) => {
  const { main, store, written } = await opened(t);
  const block = await written("a", 1, 30);
  await store.put([block, sample(2)]);
  assert.deepEqual(await contents(store), contentsOf([block, sample(2)]));
  assert.deepEqual(await keysOf(main), [sample(2).cid.toString()]);
  assert.equal(await store.size(block.cid), 200);
  assert.equal((await store.stat()).blocks, 2);
  assert.deepEqual(await store.inspect(block.cid), {
    cid: block.cid,
    status: statuses.ok,
    message: "",
    reference: { path: "a", offset: 30, size: 200 },
  });
  assert.equal(await store.check(block.cid), undefined);
  assert.deepEqual(await store.delete([block.cid, sample(3).cid]), [true, false]);
  assert.equal(await store.has(block.cid), false);
});

test("changed, truncated and removed files each cause their own error", async (t) => {
  const { root, store, written } = await opened(t);
  const block = await written("a", 1, 30);
  await store.put([block]);
  const path = join(root, "a");
  const states = [
    [Buffer.alloc(300), statuses.fileChanged, "data in file did not match. a offset 30"],
    [Buffer.alloc(100), statuses.fileChanged, "unexpected EOF"],
    [Buffer.alloc(10), statuses.fileChanged, "EOF"],
  ] as const;
  const reported = async (status: number, message: string) => {
    await assert.rejects(store.get(block.cid), { message, status });
    const { status: found, message: reason } = await store.inspect(block.cid);
    assert.deepEqual([found, reason], [status, message]);
  };
  for (const [content, status, message] of states) {
    await writeFile(path, content);
    await reported(status, message);
  }
  await rm(path);
  await reported(statuses.fileNotFound, `open ${path}: no such file or directory`);
  await mkdir(path);
  await reported(statuses.fileError, `read ${path}: is a directory`);
  assert.equal(await store.has(block.cid), true);
  const { status } = await store.inspect(sample(9).cid);
  assert.equal(status, statuses.keyNotFound);
});

test("the bytes at a location are read before a reference is stored", async (t) => {
  const { root, store, written } = await opened(t);
  const { cid, bytes } = sample(1, 200);
  const put = (path: string) => store.put([{ cid, bytes, at: { path, offset: 0 } }]);
  await assert.rejects(put(join(root, "gone")), {
    message: `failed to get block for ${cid}: open ${join(root, "gone")}: no such file or directory`,
  });
  const other = await written("other", 2);
  await assert.rejects(put(other.at.path), {
    message: `failed to get block for ${cid}: data in file did not match. other offset 0`,
  });
  assert.equal(await store.has(cid), false);
});

test("onNew reports a new reference like a new block, and not an existing one", async (t) => {
  const { store, written } = await opened(t);
  const first = await written("first", 1);
  const second = await written("second", 2);
  const reported: string[] = [];
  const options = { onNew: (cid: { toString(): string }) => reported.push(`${cid}`) };
  await store.put([first], options);
  await store.put([first, second, sample(3)], options);
  assert.deepEqual(reported.toSorted(), [first, second, sample(3)].map(({ cid }) => `${cid}`).toSorted());
});

test("references may only point to files below the root", async (t) => {
  const { root, store, written } = await opened(t);
  const block = await written("a", 1);
  const message = `cannot add filestore references outside ipfs root (${root})`;
  for (const path of ["/etc/hosts", "a", `${root}-beside/a`, join(root, "..", "a"), `${root}/a/../../a`]) {
    await assert.rejects(store.put([{ ...block, at: { path, offset: 0 } }]), { message });
  }
  await store.put([{ ...block, at: { path: `${root}/b/../a`, offset: 0 } }]);
  assert.equal((await store.inspect(block.cid)).reference?.path, "a");
});

test("each kind of reference needs its setting", async (t) => {
  const { root, main, metadata, written } = await opened(t);
  const block = await written("a", 1);
  const files = new Filestore(main, metadata, { root, files: true, urls: false });
  const urls = new Filestore(main, metadata, { root, files: false, urls: true });
  await assert.rejects(files.put([{ ...block, at: { path: "http://127.0.0.1/a", offset: 0 } }]), {
    message: "urlstore is not enabled",
  });
  await assert.rejects(urls.put([block]), { message: "filestore is not enabled, see https://git.io/vNItf" });
});

test("a referenced block is not stored again while its reference is valid", async (t) => {
  const { root, main, store, written } = await opened(t);
  const block = await written("a", 1);
  const { cid, bytes } = block;
  await store.put([block]);
  await store.put([{ cid, bytes }]);
  assert.deepEqual(await keysOf(main), []);
  await written("b", 1);
  await store.put([{ ...block, at: { path: join(root, "b"), offset: 0 } }]);
  assert.equal((await store.inspect(cid)).reference?.path, "a");
  await rm(join(root, "a"));
  await store.put([{ ...block, at: { path: join(root, "b"), offset: 0 } }]);
  assert.equal((await store.inspect(cid)).reference?.path, "b");
  await rm(join(root, "b"));
  await store.put([{ cid, bytes }]);
  assert.deepEqual(await store.get(cid), bytes);
  const duplicates = await Array.fromAsync(store.duplicates(), String);
  assert.deepEqual(duplicates, [cid.toString()]);
  assert.deepEqual(await keysOf(store), [cid.toString()]);
  assert.deepEqual(await store.delete([cid]), [true]);
  assert.deepEqual(await keysOf(store), []);
});

test("a block of the filestore is still compared with its copy in the block store", async (t) => {
  const { main, store, written } = await opened(t);
  const block = await written("a", 1);
  await main.put([block]);
  const put = t.mock.method(main, "put");
  await store.put([block]);
  assert.deepEqual(put.mock.calls[0]?.arguments[0], [block]);
  assert.equal((await store.stat()).blocks, 1);
});

test("references are listed by block, or by file and offset", async (t) => {
  const { root, store } = await opened(t);
  const one = sample(1, 10);
  const two = sample(2, 10);
  const three = sample(3, 10);
  await writeFile(join(root, "b"), Buffer.concat([two.bytes, one.bytes]));
  await writeFile(join(root, "a"), three.bytes);
  const at = (path: string, offset = 0) => ({ at: { path: join(root, path), offset } });
  await store.put([
    { ...one, ...at("b", 10) },
    { ...two, ...at("b") },
    { ...three, ...at("a") },
  ]);
  const texts = (cids: readonly { cid: unknown }[]) => cids.map(({ cid }) => String(cid));
  assert.deepEqual(texts(await Array.fromAsync(store.list())), texts([one, two, three]).sort());
  assert.deepEqual(texts(await Array.fromAsync(store.list({ byFile: true }))), texts([three, two, one]));
  const checked = await Array.fromAsync(store.verify({ byFile: true }));
  assert.deepEqual(texts(checked), texts([three, two, one]));
  assert.ok(checked.every(({ status }) => status === statuses.ok));
});

test("URLs are read by range, and ranges are cut out of the content of servers without range support", async (t) => {
  const { store } = await opened(t);
  const block = sample(1, 100);
  const whole = Buffer.concat([noise(70_000, 5), block.bytes, noise(70_000, 6)]);
  const requested: unknown[] = [];
  const url = await serving(t, (request, response) => {
    requested.push(request.headers.range);
    if (request.url === "/whole") return response.end(whole);
    if (request.url === "/short") return response.end(whole.subarray(0, 70_050));
    if (request.url === "/part") return response.writeHead(206).end(block.bytes);
    return response.writeHead(404).end("nothing here");
  });
  const put = (path: string) => store.put([{ ...block, at: { path: url + path, offset: 70_000 } }]);
  for (const path of ["/whole", "/part"]) {
    await put(path);
    assert.deepEqual(await store.get(block.cid), block.bytes);
    assert.equal((await store.inspect(block.cid)).reference?.path, url + path);
    await store.delete([block.cid]);
  }
  assert.deepEqual([...new Set(requested)], ["bytes=70000-70099"]);
  const failed = `failed to get block for ${block.cid}: `;
  await assert.rejects(put("/short"), { message: `${failed}unexpected EOF` });
  await assert.rejects(put("/gone"), { message: `${failed}expected HTTP 200 or 206 got 404` });
});

test("an error names a server that does not respond", async (t) => {
  const { store } = await opened(t);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const url = `http://127.0.0.1:${port}/x`;
  const block = { ...sample(1), at: { path: url, offset: 0 } };
  const reason = `Get "${url}": dial tcp 127.0.0.1:${port}: connect: connection refused`;
  await assert.rejects(store.put([block]), { message: `failed to get block for ${block.cid}: ${reason}` });
});

test("references have the encoding of go-filestore and can be decoded", () => {
  const known = { path: "d/big", offset: 262_144, size: 37_856 };
  const hex = `0a05${Buffer.from("d/big").toString("hex")}1080801018e0a702`;
  assert.equal(Buffer.from(encodeReference(known)).toString("hex"), hex);
  for (const reference of [
    known,
    { path: "ü", offset: 0, size: 1 },
    { path: "x".repeat(300), offset: 2 ** 40, size: 9 },
  ]) {
    assert.deepEqual(decodeReference(encodeReference(reference)), reference);
  }
});

test("references are counted once, and the count is updated by changes", async (t) => {
  const { main, metadata, written } = await opened(t);
  let ranges = 0;
  const counting = {
    ...metadata,
    range: (bounds: Parameters<typeof metadata.range>[0]) => {
      ranges += 1;
      return metadata.range(bounds);
    },
  };
  const one = await written("a", 1);
  const two = await written("b", 2);
  const root = one.at.path.slice(0, -2);
  const store = new Filestore(main, counting, { root, files: true, urls: true });
  await store.put([one]);
  const count = async () => (await store.stat()).blocks;
  assert.deepEqual(await Promise.all([count(), store.put([one, two]).then(count)]), [1, 2]);
  await store.put([two]);
  assert.equal(await count(), 2);
  await store.delete([one.cid, sample(3).cid]);
  await main.put([two]);
  assert.equal(await count(), 2, "one reference, one stored block");
  const three = await written("c", 4);
  await store.put([three, three, three]);
  assert.equal(await count(), 3, "a block that comes several times at once");
  assert.equal(ranges, 1);
  assert.equal((await new Filestore(main, metadata, { root, files: true, urls: true }).stat()).blocks, 3);
});
