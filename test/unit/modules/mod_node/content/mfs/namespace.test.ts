import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { namespacePath } from "#node/content/mfs/path.ts";
import { writeFile } from "#node/content/mfs/write_file.ts";
import { blockFormat, makeBlock } from "#node/storage/blockstore/make_block.ts";
import { failure } from "#node/util/errors.ts";
import { TestNamespace } from "./test_namespace.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

test("a new namespace is the empty directory", async () => {
  const mfs = new TestNamespace();
  assert.equal(String(await mfs.cid()), emptyDirectory);
  assert.deepEqual(await mfs.ls(), []);
});

test("flushed changes survive a crash, and changes that were not flushed need not", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/a/b", { parents: true });
  await mfs.write("/a/b/f", "kept");
  await mfs.mv("/a/b/f", "/a/g");
  await mfs.chcid("/a/b", { version: 1 });
  await mfs.write("/gone", "x");
  await mfs.rm("/gone");
  const root = await mfs.cid();
  await mfs.write("/loose", "x", { flush: false });
  mfs.crash();
  assert.equal(String(await mfs.cid()), String(root));
  assert.equal(await mfs.read("/a/g"), "kept");
  assert.equal((await mfs.stat("/a/b")).cid.version, 1);
});

test("a flush makes earlier changes durable, too", async () => {
  const mfs = new TestNamespace();
  await mfs.write("/one", "1", { flush: false });
  await mfs.write("/two", "2");
  mfs.crash();
  assert.deepEqual(await mfs.ls(), ["one", "two"]);
});

test("a close makes all changes durable, and stores the root", async () => {
  const mfs = new TestNamespace();
  await mfs.write("/one", "1", { flush: false });
  const root = await mfs.cid();
  await mfs.files.close();
  assert.deepEqual(await mfs.metadata.get("files/root"), root.bytes);
  mfs.crash();
  assert.equal(await mfs.read("/one"), "1");
});

test("thousands of changes are durable although the root is not stored each time", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/d");
  let bytes = 0;
  const { put } = mfs.store;
  mfs.store.put = async (blocks) => {
    for (const block of blocks) bytes += block.bytes.length;
    return put.call(mfs.store, blocks);
  };
  for (let count = 0; count < 2500; count += 1) await mfs.write(`/d/file-${count}`, String(count));
  // If the directory were stored each time, this would be more than a hundred million.
  assert.ok(bytes < 3_000_000, `${bytes} bytes for 2,500 small files`);
  const root = await mfs.cid();
  mfs.crash();
  assert.equal(String(await mfs.cid()), String(root));
  assert.equal((await mfs.ls("/d")).length, 2500);
  assert.equal(await mfs.read("/d/file-1777"), "1777");
});

test("changes that are not flushed are committed from time to time", async () => {
  const mfs = new TestNamespace();
  for (let count = 0; count < 1100; count += 1) await mfs.mkdir(`/d${count}`, { flush: false });
  mfs.crash();
  assert.ok((await mfs.ls()).length >= 1000);
});

test("concurrent calls are all durable, and share flushes", async () => {
  const mfs = new TestNamespace();
  let syncs = 0;
  const { sync } = mfs.store;
  mfs.store.sync = () => {
    syncs += 1;
    return nextTurn().then(() => sync.call(mfs.store));
  };
  await Promise.all(Array.from({ length: 200 }, (_, at) => mfs.write(`/f${at % 50}-${at}`, String(at))));
  assert.ok(syncs < 100, `${syncs} flushes for 200 files`);
  mfs.crash();
  assert.equal((await mfs.ls()).length, 200);
});

test("writers of one file wait for each other", async () => {
  const mfs = new TestNamespace();
  const begun: string[] = [];
  const gate = Promise.withResolvers<void>();
  const options = {
    flush: true,
    offset: 0,
    count: undefined,
    create: true,
    parents: false,
    truncate: true,
    rawLeaves: undefined,
    settings: undefined,
  };
  const write = (text: string, wait: Promise<void>) =>
    writeFile(
      mfs.files,
      namespacePath("/f"),
      async () => {
        begun.push(text);
        return (async function* () {
          await wait;
          yield Buffer.from(text);
        })();
      },
      options,
    );
  const first = write("first", gate.promise);
  const second = write("second", Promise.resolve());
  await mfs.write("/other", "x");
  assert.deepEqual(begun, ["first"]);
  assert.deepEqual(await mfs.ls(), ["other"]);
  gate.resolve();
  await Promise.all([first, second]);
  assert.equal(await mfs.read("/f"), "second");
});

test("a write fails if its file is replaced or removed meanwhile, and does not change that", async () => {
  const mfs = new TestNamespace();
  await mfs.write("/f", "before");
  const during = async (act: () => Promise<void>, path: string) => {
    const gate = Promise.withResolvers<void>();
    const body = async () => {
      await act();
      gate.resolve();
      return (async function* () {
        yield Buffer.from("during");
      })();
    };
    const options = { flush: true, offset: 0, count: undefined, create: true, parents: false, truncate: false };
    const writing = writeFile(mfs.files, namespacePath(path), body, {
      ...options,
      rawLeaves: undefined,
      settings: undefined,
    });
    await gate.promise;
    return writing;
  };
  await mfs.write("/g", "other");
  await assert.rejects(
    during(() => mfs.mv("/g", "/f"), "/f"),
    { message: "/f was replaced while it was being written" },
  );
  assert.equal(await mfs.read("/f"), "other");
  await assert.rejects(
    during(() => mfs.rm("/f"), "/f"),
    { message: "file does not exist" },
  );
  assert.deepEqual(await mfs.ls(), []);
});

test("a body that ends early changes nothing", async () => {
  const mfs = new TestNamespace();
  await mfs.write("/f", "before");
  const body = async () =>
    (async function* () {
      yield Buffer.alloc(600_000);
      throw new Error("the client left");
    })();
  const options = { flush: true, offset: 0, count: undefined, create: true, parents: false, truncate: true };
  await assert.rejects(
    writeFile(mfs.files, namespacePath("/f"), body, { ...options, rawLeaves: undefined, settings: undefined }),
    /the client left/,
  );
  assert.equal(await mfs.read("/f"), "before");
  await mfs.write("/f", "after", { truncate: true });
  assert.equal(await mfs.read("/f"), "after");
});

test("a move goes into an existing directory, replaces a file, and rejects invalid targets", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/d/e", { parents: true });
  await mfs.mkdir("/other/e", { parents: true });
  await mfs.write("/f", "f");
  await mfs.write("/d/e/f", "deep");
  await mfs.mv("/f", "/d");
  assert.equal(await mfs.read("/d/f"), "f");
  await mfs.mv("/d/e/f", "/d/f");
  assert.equal(await mfs.read("/d/f"), "deep");
  // Two directories of the same name are different directories.
  await mfs.mv("/d/f", "/d/e/");
  await mfs.mv("/d/e/f", "/other/e/f");
  assert.deepEqual(await mfs.ls("/d/e"), []);
  assert.deepEqual(await mfs.ls("/other/e"), ["f"]);
  await assert.rejects(mfs.mv("/other/e", "/d"), { message: "directory already has entry by that name" });
  await mfs.mv("/other/e/f", "/other/e/f");
  await mfs.mv("/other", "/");
  await mfs.mv("/other", "/other");
  assert.deepEqual(await mfs.ls("/other/e"), ["f"]);
  await assert.rejects(mfs.mv("/other", "/other/e/inner"), {
    message: "cannot move /other to a subdirectory of itself, /other/e/inner",
  });
  await assert.rejects(mfs.mv("/other", "/other/e"), /subdirectory of itself/);
  await assert.rejects(mfs.mv("/", "/x"), { message: "file does not exist" });
  await assert.rejects(mfs.mv("/d", "/other/e/f/x"), { message: "/other/e/f/ is not a directory" });
});

test("a move is complete or without effect after a crash at any time", async () => {
  for (let failing = 0; ; failing += 1) {
    const mfs = new TestNamespace();
    await mfs.mkdir("/a");
    await mfs.mkdir("/b");
    await mfs.write("/a/f", "f");
    let calls = 0;
    const { transaction } = mfs.metadata;
    mfs.metadata.transaction = async (run) => {
      if (calls++ === failing) throw failure("STORE_FULL", { path: "x", reason: "test" });
      return transaction.call(mfs.metadata, run) as never;
    };
    const moved = await mfs.mv("/a/f", "/b").then(
      () => true,
      () => false,
    );
    mfs.metadata.transaction = transaction;
    mfs.crash();
    const from = await mfs.ls("/a");
    const to = await mfs.ls("/b");
    assert.deepEqual([...from, ...to], ["f"]);
    if (moved) {
      assert.deepEqual(to, ["f"]);
      return;
    }
  }
});

test("copies are independent of the original and do not overwrite entries", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/a");
  await mfs.write("/a/f", "one");
  await mfs.cp("/a", "/b");
  await mfs.write("/a/f", "two");
  assert.equal(await mfs.read("/b/f"), "one");
  await mfs.cp("/a/f", "/b/g");
  await assert.rejects(mfs.cp("/a/f", "/b/"), {
    message: "cp: cannot put node in path /b/f: directory already has entry by that name",
  });
  await assert.rejects(mfs.cp("/none", "/x"), {
    message: "cp: cannot get node from path /none: file does not exist",
  });
  await assert.rejects(mfs.cp("/a", "/no/x"), {
    message: "cp: cannot put node in path /no/x: file does not exist",
  });
  await mfs.cp("/", "/a/whole");
  assert.deepEqual(await mfs.ls("/a/whole"), ["a/", "b/"]);
  await assert.rejects(mfs.cp("/", "/a/"), /cannot create file with empty name/);
});

test("a block that cannot be an entry is rejected without any effect", async () => {
  const mfs = new TestNamespace();
  const block = await makeBlock(Buffer.from("a0", "hex"), blockFormat("cbor", "sha2-256", -1));
  await mfs.blocks.put([block]);
  for (const flush of [true, false]) {
    await assert.rejects(mfs.cp(block.cid, "/c", flush), {
      message: "cp: cannot flush the created file /c: unrecognized node type in cache node",
    });
  }
  assert.deepEqual(await mfs.ls(), []);
});

test("entries that cannot be read can be removed by force, but not replaced", async () => {
  const mfs = new TestNamespace();
  await mfs.write("/f", "x");
  await mfs.files.commit({ whole: true });
  await mfs.store.delete([await mfs.cid("/f")]);
  mfs.crash();
  await assert.rejects(mfs.read("/f"), { message: "merkledag: not found" });
  await assert.rejects(mfs.mkdir("/f"), { message: "merkledag: not found" });
  await assert.rejects(mfs.rm("/f"), { message: "merkledag: not found" });
  await mfs.rm("/f", { force: true });
  await mfs.rm("/f", { force: true });
  await mfs.rm("/no/such/place", { force: true });
  assert.deepEqual(await mfs.ls(), []);
});

test("a sharded directory is sharded after a restart, and stays so", async () => {
  const mfs = new TestNamespace();
  mfs.sharded = true;
  for (let count = 0; count < 300; count += 1) await mfs.write(`/d/f${count}`, String(count), { parents: true });
  const root = await mfs.cid();
  mfs.crash();
  assert.equal(String(await mfs.cid()), String(root));
  mfs.sharded = false;
  for (let count = 0; count < 300; count += 1) await mfs.rm(`/d/f${count}`);
  assert.equal(String(await mfs.cid("/d")), "Qma5kEnM5fEKTXrFC5zXYRy5QG3hcMWopoFS7ijhxx19qc");
});

test("insecure and unknown hash functions are rejected before anything changes", async () => {
  const mfs = new TestNamespace();
  await assert.rejects(mfs.mkdir("/d", { hash: "md5" }), /insecure/);
  await assert.rejects(mfs.mkdir("/d", { hash: "keccak-224" }), /no such hash registered/);
  await assert.rejects(mfs.mkdir("/d", { hash: "nope" }), { message: "unrecognized hash function: nope" });
  await assert.rejects(mfs.mkdir("/d", { version: 2 }), { message: "unknown CID version: 2" });
  await mfs.mkdir("/d", { hash: "SHA3-256" });
  assert.equal((await mfs.cid("/d")).multihash.code, 0x16);
  assert.equal(String(await mfs.cid()).startsWith("Qm"), true);
});
