import assert from "node:assert/strict";
import { mock, test } from "node:test";
import type { CID } from "multiformats/cid";
import type { ReadBlock } from "#node/content/dag/reader.ts";
import { openFile } from "#node/content/unixfs/open.ts";
import { exportTar } from "#node/content/unixfs/tar.ts";
import { BufferPool, MIN_POOLED_BYTES } from "#node/storage/blockstore/buffer_pool.ts";
import { failure } from "#node/util/errors.ts";
import { Trees } from "./trees.ts";

const names = Array.from({ length: 100 }, (_, at) => `f${String(at).padStart(2, "0")}`);
const files = Object.fromEntries(names.map((name) => [`d/${name}`, name]));

test("a few entries are opened ahead, and are in order in the archive", async () => {
  const trees = new Trees();
  const root = (await trees.add(files)).get("d") as CID;
  let running = 0;
  let most = 0;
  const read = async (cid: CID) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
    return trees.read(cid);
  };
  const pieces = await Array.fromAsync(exportTar(await openFile(root, read), "d", read));
  const archive = Buffer.concat(pieces).toString("latin1");
  assert.ok(most > 4 && most <= 64, `${most} at a time`);
  const found = [...archive.matchAll(/d\/(f\d\d)\0/g)].map(([, name]) => name);
  assert.deepEqual(found, names);
});

test("a missing entry ends the archive after the entries before it", async () => {
  const trees = new Trees();
  const all = await trees.add(files);
  const missing = all.get("d/f30") as CID;
  const read = async (cid: CID) => {
    if (cid.equals(missing)) throw failure("NODE_NOT_FOUND");
    return trees.read(cid);
  };
  const sent: Uint8Array[] = [];
  const root = await openFile(all.get("d") as CID, read);
  await assert.rejects(
    async () => {
      for await (const piece of exportTar(root, "d", read)) sent.push(piece);
    },
    { code: "NODE_NOT_FOUND" },
  );
  const archive = Buffer.concat(sent).toString("latin1");
  assert.ok(archive.includes("d/f29\0"));
  assert.equal(archive.includes("d/f31\0"), false);
});

test("an archive from pooled buffers has the same bytes, and reuses the buffers", async () => {
  const trees = new Trees();
  const many = Object.fromEntries(names.map((name, at) => [`d/${name}`, name.repeat(at * 400)]));
  const root = (await trees.add(many, { chunker: "size-50000" })).get("d") as CID;
  const now = Date.now();
  mock.timers.enable({ apis: ["Date"], now });
  try {
    const plain = await Array.fromAsync(exportTar(await openFile(root, trees.read), "d", trees.read));
    const buffers = new BufferPool();
    const pooled = new Set<ArrayBufferLike>();
    let times = 0;
    const read = async (cid: CID) => {
      const bytes = await trees.read(cid);
      const into = buffers.take(bytes.length);
      into.set(bytes);
      if (into.length < MIN_POOLED_BYTES) return into;
      times += 1;
      pooled.add(into.buffer);
      return into;
    };
    const copied: Uint8Array[] = [];
    for await (const piece of exportTar(await openFile(root, read), "d", read, { buffers })) {
      copied.push(piece.slice());
      buffers.release(piece.fill(0));
    }
    assert.ok(Buffer.concat(copied).equals(Buffer.concat(plain)));
    assert.ok(pooled.size < times / 2, `${pooled.size} buffers, lent ${times} times`);
  } finally {
    mock.timers.reset();
  }
});

test("an archive has the same bytes, whichever blocks are in memory", async () => {
  const trees = new Trees();
  const many = { ...files, "d/e/large": "large".repeat(50_000), "d/e/small": "small", "d/z": "last" };
  const root = (await trees.add(many, { chunker: "size-50000" })).get("d") as CID;
  const archive = async (read: ReadBlock) => {
    const pieces = await Array.fromAsync(exportTar(await openFile(root, read), "d", read));
    return Buffer.concat(pieces);
  };
  mock.timers.enable({ apis: ["Date"], now: Date.now() });
  try {
    const plain = await archive(trees.read);
    for (const most of [0, 1, 2, 3]) {
      let given = 0;
      const peek: ReadBlock["peek"] = (cids) =>
        cids.map((cid, at) => {
          if (at % 3 >= most) return undefined;
          given += 1;
          return trees.blocks.get(cid.toString());
        });
      const read = Object.assign((cid: CID) => trees.read(cid), { peek });
      assert.ok((await archive(read)).equals(plain), `${most} of 3`);
      assert.equal(given > 20, most > 0);
    }
  } finally {
    mock.timers.reset();
  }
});
