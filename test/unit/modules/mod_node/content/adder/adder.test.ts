import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { hashOnly } from "#node/content/adder/adder.ts";
import { addSettings } from "#node/content/adder/settings.ts";
import { nodeReader } from "#node/content/dag/reader.ts";
import { collectGarbage } from "#node/content/pins/gc.ts";
import type { AddEntry } from "#node/content/unixfs/add.ts";
import { unixfsNode } from "#node/content/unixfs/node.ts";
import { readFile } from "#node/content/unixfs/read.ts";
import { readUpTo } from "#node/util/async/read_all.ts";
import { file, files, namesOf, TestVault } from "./support.ts";

const numbered = (count: number, prefix = "") => Array.from({ length: count }, (_, at) => `${prefix}f${at}`);

/** Runs the event loop often enough for everything that needs no other event. */
async function quiet(): Promise<void> {
  for (let turns = 0; turns < 50; turns += 1) await turn();
}

test("a root is reported once it is durable and pinned, and files inside it as they are built", async () => {
  const vault = new TestVault();
  const disk = Promise.withResolvers<void>();
  vault.disk = () => disk.promise;
  const reported: string[] = [];
  const adding = (async () => {
    for await (const { name } of vault.add(files("d/a", "d/b"))) reported.push(name);
  })();
  await quiet();
  assert.deepEqual(reported, ["d/a", "d/b"]);
  assert.deepEqual(await vault.pinned(), []);
  disk.resolve();
  await adding;
  assert.deepEqual(reported, ["d/a", "d/b", "d"]);
  assert.equal((await vault.pinned()).length, 1);
});

test("roots that arrive while the disk is busy share the next flush, and are reported in order", async () => {
  const vault = new TestVault();
  const disk = Promise.withResolvers<void>();
  vault.disk = () => (vault.syncs === 1 ? disk.promise : Promise.resolve());
  const names = numbered(300);
  const adding = namesOf(vault.add(files(...names)));
  await quiet();
  disk.resolve();
  assert.deepEqual(await adding, names);
  assert.equal((await vault.pinned()).length, 300);
  assert.ok(vault.syncs <= 4, `${vault.syncs} flushes`);
});

test("an add fails when the disk fails, and reports no root", async () => {
  const vault = new TestVault();
  vault.disk = () => Promise.reject(new Error("no space"));
  const reported: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { name } of vault.add(files("d/a", "x"))) reported.push(name);
    },
    { message: "no space" },
  );
  assert.deepEqual(reported, ["d/a"]);
  assert.deepEqual(await vault.pinned(), []);
  await vault.lock.acquireExclusive();
});

test("entries before a failing one are durable and reported", async () => {
  const vault = new TestVault();
  const reported: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { name } of vault.add(files("one", "two", "d/a", "d/a"))) reported.push(name);
    },
    { message: "directory already has entry by that name" },
  );
  assert.deepEqual(reported, ["one", "two", "d/a"]);
  assert.equal((await vault.pinned()).length, 2);
});

/** Collects garbage with the lock held exclusively. Returns the CIDs that were removed. */
async function collect(vault: TestVault): Promise<string[]> {
  const release = await vault.lock.acquireExclusive();
  const removed: string[] = [];
  await collectGarbage(vault.blocks, vault.pins, (result) => {
    if ("removed" in result) removed.push(result.removed.toString());
  });
  release();
  return removed;
}

for (const settings of [{}, { trickle: true }, { rawLeaves: true }, { inline: true }]) {
  test(`a slow client within a file does not delay a collection, and loses nothing: ${JSON.stringify(settings)}`, async () => {
    const vault = new TestVault();
    const [stray] = await Array.fromAsync(vault.add(files("stray"), { pin: false }));
    const leaf = randomBytes(1000);
    const whole = Buffer.concat([leaf, leaf, randomBytes(700_000), leaf]);
    const removed: string[] = [];
    const body = async function* () {
      yield whole.subarray(0, 1000);
      removed.push(...(await collect(vault)));
      yield whole.subarray(1000, 500_000);
      removed.push(...(await collect(vault)));
      yield whole.subarray(500_000);
      removed.push(...(await collect(vault)));
    };
    const entry: AddEntry = { path: "d/slow", kind: "file", body: body() };
    const entries = (async function* () {
      yield file("d/before");
      yield entry;
    })();
    const events = await Array.fromAsync(vault.add(entries, { ...settings, chunker: "size-1000" }));
    assert.deepEqual(removed, [String(stray?.built?.cid)]);
    await collect(vault);
    const cid = events.find(({ name }) => name === "d/slow")?.built?.cid as CID;
    const read = nodeReader(vault.blocks, { offline: true });
    const node = unixfsNode(cid, await read(cid));
    assert.ok(node);
    assert.ok(whole.equals(await readUpTo(readFile(node, read))));
    assert.deepEqual(Array.from(vault.pins.guarded()), []);
  });
}

test("a waiting collection runs between two files and spares the built blocks", async () => {
  const vault = new TestVault();
  const [stray] = await Array.fromAsync(vault.add(files("stray"), { pin: false }));
  const removed: string[] = [];
  let collecting: Promise<void> | undefined;
  async function* entries(): AsyncGenerator<AddEntry> {
    yield file("d/a");
    collecting = vault.lock.acquireExclusive().then(async (release) => {
      await collectGarbage(vault.blocks, vault.pins, (result) => {
        if ("removed" in result) removed.push(result.removed.toString());
      });
      release();
    });
    yield file("d/b");
    await collecting;
    yield file("d/c");
  }
  const events = await Array.fromAsync(vault.add(entries()));
  await collecting;
  assert.deepEqual(removed, [String(stray?.built?.cid)]);
  for (const { built } of events) assert.ok(built && (await vault.blocks.has(built.cid)));
  assert.deepEqual(Array.from(vault.pins.guarded()), []);
});

test("blocks of an add are protected from collections only until its roots are reported", async () => {
  const vault = new TestVault();
  const events = await Array.fromAsync(vault.add(files("d/a"), { pin: false }));
  await collectGarbage(vault.blocks, vault.pins, () => {});
  for (const { built } of events) assert.equal(built && (await vault.blocks.has(built.cid)), false);
});

test("a reader that stops early leaves no lock and no guard behind", async () => {
  const vault = new TestVault();
  for await (const _ of vault.add(files(...numbered(50)))) break;
  await vault.lock.acquireExclusive();
  assert.deepEqual(Array.from(vault.pins.guarded()), []);
});

/**
 * Sources that yield some entries or bytes and then never anything else. `waiting` resolves when
 * the next one is requested.
 */
const silent = {
  "between two entries": () => {
    const { promise: waiting, resolve: markWaiting } = Promise.withResolvers<void>();
    const entries = async function* (): AsyncGenerator<AddEntry> {
      yield* files("a", "d/b");
      markWaiting();
      await new Promise(() => {});
    };
    return { entries: entries(), waiting };
  },
  "within a file": () => {
    const { promise: waiting, resolve: markWaiting } = Promise.withResolvers<void>();
    const body = async function* () {
      yield randomBytes(2000);
      markWaiting();
      await new Promise(() => {});
    };
    const entries = async function* (): AsyncGenerator<AddEntry> {
      yield* files("a", "d/b");
      yield { path: "d/c", kind: "file", body: body() };
    };
    return { entries: entries(), waiting };
  },
};

for (const [where, source] of Object.entries(silent)) {
  test(`a reader that stops does not wait for a source that is silent ${where}, and leaves nothing behind`, async () => {
    const vault = new TestVault();
    const { entries, waiting } = source();
    for await (const { root } of vault.add(entries, { chunker: "size-1000", progress: true })) {
      await waiting;
      if (root) break;
    }
    await vault.lock.acquireExclusive();
    assert.deepEqual(Array.from(vault.pins.guarded()), []);
    assert.equal((await vault.pinned()).length, 1);
  });

  test(`a signal ends the wait for a source that is silent ${where}, after the events before it`, async () => {
    const vault = new TestVault();
    const leaving = new AbortController();
    const { entries, waiting } = source();
    const reported: string[] = [];
    const adding = (async () => {
      for await (const { name } of vault.add(entries, { chunker: "size-1000", signal: leaving.signal }))
        reported.push(name);
    })();
    await waiting;
    await quiet();
    leaving.abort(new Error("long enough"));
    await assert.rejects(adding, { message: "long enough" });
    assert.deepEqual(reported, ["a", "d/b"]);
    await vault.lock.acquireExclusive();
    assert.deepEqual(Array.from(vault.pins.guarded()), []);
  });
}

test("a slow reader stops the reading of entries at about a thousand events", async () => {
  const vault = new TestVault();
  let taken = 0;
  async function* entries(): AsyncGenerator<AddEntry> {
    for (const path of numbered(3000)) {
      taken += 1;
      yield file(path, "the same");
    }
  }
  const events = vault.add(entries());
  await events.next();
  await quiet();
  for (let turns = 0; turns < 5000 && taken < 1020; turns += 1) await turn();
  await quiet();
  assert.ok(taken <= 1030, `${taken} taken`);
  assert.equal((await Array.fromAsync(events)).length, 2999);
});

test("a dry run stores nothing, and rejects insecure hash functions, too", async () => {
  const [event] = await Array.fromAsync(hashOnly(files("x"), addSettings({})));
  assert.equal(event?.name, "x");
  await assert.rejects(Array.fromAsync(hashOnly(files("x"), addSettings({ hash: "shake-128" }))), {
    message: "potentially insecure hash functions not allowed",
  });
});
