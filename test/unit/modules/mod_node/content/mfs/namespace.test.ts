import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { namespacePath } from "#node/content/mfs/path.ts";
import { writeFile } from "#node/content/mfs/write_file.ts";
import { blockFormat, makeBlock } from "#node/storage/blockstore/make_block.ts";
import { failure } from "#node/util/errors.ts";
import { Place } from "./place.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

test("a new namespace is the empty directory", async () => {
  const place = new Place();
  assert.equal(String(await place.cid()), emptyDirectory);
  assert.deepEqual(await place.ls(), []);
});

test("what was flushed is there after a crash, what was not may be gone; and nothing else is", async () => {
  const place = new Place();
  await place.mkdir("/a/b", { parents: true });
  await place.write("/a/b/f", "kept");
  await place.mv("/a/b/f", "/a/g");
  await place.chcid("/a/b", { version: 1 });
  await place.write("/gone", "x");
  await place.rm("/gone");
  const root = await place.cid();
  await place.write("/loose", "x", { flush: false });
  place.crash();
  assert.equal(String(await place.cid()), String(root));
  assert.equal(await place.read("/a/g"), "kept");
  assert.equal((await place.stat("/a/b")).cid.version, 1);
});

test("a flushed change takes those before it along", async () => {
  const place = new Place();
  await place.write("/one", "1", { flush: false });
  await place.write("/two", "2");
  place.crash();
  assert.deepEqual(await place.ls(), ["one", "two"]);
});

test("a close keeps what was not flushed, and the root with it", async () => {
  const place = new Place();
  await place.write("/one", "1", { flush: false });
  const root = await place.cid();
  await place.files.close();
  assert.deepEqual(await place.metadata.get("files/root"), root.bytes);
  place.crash();
  assert.equal(await place.read("/one"), "1");
});

test("thousands of changes are kept without the root following each of them", async () => {
  const place = new Place();
  await place.mkdir("/d");
  let bytes = 0;
  const { put } = place.store;
  place.store.put = async (blocks) => {
    for (const block of blocks) bytes += block.bytes.length;
    return put.call(place.store, blocks);
  };
  for (let count = 0; count < 2500; count += 1) await place.write(`/d/file-${count}`, String(count));
  // Were the directory written each time, these would be over a hundred million.
  assert.ok(bytes < 3_000_000, `${bytes} bytes for 2,500 small files`);
  const root = await place.cid();
  place.crash();
  assert.equal(String(await place.cid()), String(root));
  assert.equal((await place.ls("/d")).length, 2500);
  assert.equal(await place.read("/d/file-1777"), "1777");
});

test("changes that are not flushed do not gather without end", async () => {
  const place = new Place();
  for (let count = 0; count < 1100; count += 1) await place.mkdir(`/d${count}`, { flush: false });
  place.crash();
  assert.ok((await place.ls()).length >= 1000);
});

test("calls at the same time are all kept, and share what it costs", async () => {
  const place = new Place();
  let syncs = 0;
  const { sync } = place.store;
  place.store.sync = () => {
    syncs += 1;
    return nextTurn().then(() => sync.call(place.store));
  };
  await Promise.all(Array.from({ length: 200 }, (_, at) => place.write(`/f${at % 50}-${at}`, String(at))));
  assert.ok(syncs < 100, `${syncs} flushes for 200 files`);
  place.crash();
  assert.equal((await place.ls()).length, 200);
});

test("writers of one file wait for each other", async () => {
  const place = new Place();
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
      place.files,
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
  await place.write("/other", "x");
  assert.deepEqual(begun, ["first"]);
  assert.deepEqual(await place.ls(), ["other"]);
  gate.resolve();
  await Promise.all([first, second]);
  assert.equal(await place.read("/f"), "second");
});

test("a file that is replaced or gone while it is written stays as it was made", async () => {
  const place = new Place();
  await place.write("/f", "before");
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
    const writing = writeFile(place.files, namespacePath(path), body, {
      ...options,
      rawLeaves: undefined,
      settings: undefined,
    });
    await gate.promise;
    return writing;
  };
  await place.write("/g", "other");
  await assert.rejects(
    during(() => place.mv("/g", "/f"), "/f"),
    { message: "/f was replaced while it was being written" },
  );
  assert.equal(await place.read("/f"), "other");
  await assert.rejects(
    during(() => place.rm("/f"), "/f"),
    { message: "file does not exist" },
  );
  assert.deepEqual(await place.ls(), []);
});

test("a body that breaks off changes nothing", async () => {
  const place = new Place();
  await place.write("/f", "before");
  const body = async () =>
    (async function* () {
      yield Buffer.alloc(600_000);
      throw new Error("the client left");
    })();
  const options = { flush: true, offset: 0, count: undefined, create: true, parents: false, truncate: true };
  await assert.rejects(
    writeFile(place.files, namespacePath("/f"), body, { ...options, rawLeaves: undefined, settings: undefined }),
    /the client left/,
  );
  assert.equal(await place.read("/f"), "before");
  await place.write("/f", "after", { truncate: true });
  assert.equal(await place.read("/f"), "after");
});

test("where things go when they move", async () => {
  const place = new Place();
  await place.mkdir("/d/e", { parents: true });
  await place.mkdir("/other/e", { parents: true });
  await place.write("/f", "f");
  await place.write("/d/e/f", "deep");
  await place.mv("/f", "/d");
  assert.equal(await place.read("/d/f"), "f");
  await place.mv("/d/e/f", "/d/f");
  assert.equal(await place.read("/d/f"), "deep");
  // Two directories of one name are two directories.
  await place.mv("/d/f", "/d/e/");
  await place.mv("/d/e/f", "/other/e/f");
  assert.deepEqual(await place.ls("/d/e"), []);
  assert.deepEqual(await place.ls("/other/e"), ["f"]);
  await assert.rejects(place.mv("/other/e", "/d"), { message: "directory already has entry by that name" });
  await place.mv("/other/e/f", "/other/e/f");
  await place.mv("/other", "/");
  await place.mv("/other", "/other");
  assert.deepEqual(await place.ls("/other/e"), ["f"]);
  await assert.rejects(place.mv("/other", "/other/e/inner"), {
    message: "cannot move /other to a subdirectory of itself, /other/e/inner",
  });
  await assert.rejects(place.mv("/other", "/other/e"), /subdirectory of itself/);
  await assert.rejects(place.mv("/", "/x"), { message: "file does not exist" });
  await assert.rejects(place.mv("/d", "/other/e/f/x"), { message: "/other/e/f/ is not a directory" });
});

test("a move is whole after a crash, wherever it falls", async () => {
  for (let failing = 0; ; failing += 1) {
    const place = new Place();
    await place.mkdir("/a");
    await place.mkdir("/b");
    await place.write("/a/f", "f");
    let calls = 0;
    const { transaction } = place.metadata;
    place.metadata.transaction = async (run) => {
      if (calls++ === failing) throw failure("STORE_FULL", { path: "x", reason: "test" });
      return transaction.call(place.metadata, run) as never;
    };
    const moved = await place.mv("/a/f", "/b").then(
      () => true,
      () => false,
    );
    place.metadata.transaction = transaction;
    place.crash();
    const from = await place.ls("/a");
    const to = await place.ls("/b");
    assert.deepEqual([...from, ...to], ["f"]);
    if (moved) {
      assert.deepEqual(to, ["f"]);
      return;
    }
  }
});

test("copies are cheap, stand alone, and do not overwrite", async () => {
  const place = new Place();
  await place.mkdir("/a");
  await place.write("/a/f", "one");
  await place.cp("/a", "/b");
  await place.write("/a/f", "two");
  assert.equal(await place.read("/b/f"), "one");
  await place.cp("/a/f", "/b/g");
  await assert.rejects(place.cp("/a/f", "/b/"), {
    message: "cp: cannot put node in path /b/f: directory already has entry by that name",
  });
  await assert.rejects(place.cp("/none", "/x"), {
    message: "cp: cannot get node from path /none: file does not exist",
  });
  await assert.rejects(place.cp("/a", "/no/x"), {
    message: "cp: cannot put node in path /no/x: file does not exist",
  });
  await place.cp("/", "/a/whole");
  assert.deepEqual(await place.ls("/a/whole"), ["a/", "b/"]);
  await assert.rejects(place.cp("/", "/a/"), /cannot create file with empty name/);
});

test("what the namespace cannot hold is refused and leaves nothing", async () => {
  const place = new Place();
  const block = await makeBlock(Buffer.from("a0", "hex"), blockFormat("cbor", "sha2-256", -1));
  await place.blocks.put([block]);
  for (const flush of [true, false]) {
    await assert.rejects(place.cp(block.cid, "/c", flush), {
      message: "cp: cannot flush the created file /c: unrecognized node type in cache node",
    });
  }
  assert.deepEqual(await place.ls(), []);
});

test("entries that cannot be read can be removed by force, and do not make way for others", async () => {
  const place = new Place();
  await place.write("/f", "x");
  await place.files.commit({ whole: true });
  await place.store.delete([await place.cid("/f")]);
  place.crash();
  await assert.rejects(place.read("/f"), { message: "merkledag: not found" });
  await assert.rejects(place.mkdir("/f"), { message: "merkledag: not found" });
  await assert.rejects(place.rm("/f"), { message: "merkledag: not found" });
  await place.rm("/f", { force: true });
  await place.rm("/f", { force: true });
  await place.rm("/no/such/place", { force: true });
  assert.deepEqual(await place.ls(), []);
});

test("a sharded namespace comes back sharded, and is never turned back", async () => {
  const place = new Place();
  place.sharded = true;
  for (let count = 0; count < 300; count += 1) await place.write(`/d/f${count}`, String(count), { parents: true });
  const root = await place.cid();
  place.crash();
  assert.equal(String(await place.cid()), String(root));
  place.sharded = false;
  for (let count = 0; count < 300; count += 1) await place.rm(`/d/f${count}`);
  assert.equal(String(await place.cid("/d")), "Qma5kEnM5fEKTXrFC5zXYRy5QG3hcMWopoFS7ijhxx19qc");
});

test("hash functions that may not be used, or cannot, are refused before anything changes", async () => {
  const place = new Place();
  await assert.rejects(place.mkdir("/d", { hash: "md5" }), /insecure/);
  await assert.rejects(place.mkdir("/d", { hash: "keccak-224" }), /no such hash registered/);
  await assert.rejects(place.mkdir("/d", { hash: "nope" }), { message: "unrecognized hash function: nope" });
  await assert.rejects(place.mkdir("/d", { version: 2 }), { message: "unknown CID version: 2" });
  await place.mkdir("/d", { hash: "SHA3-256" });
  assert.equal((await place.cid("/d")).multihash.code, 0x16);
  assert.equal(String(await place.cid()).startsWith("Qm"), true);
});
