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

/** Enough turns of the event loop for all that waits for nothing but itself. */
async function quiet(): Promise<void> {
  for (let turns = 0; turns < 50; turns += 1) await turn();
}

test("a root is told when it is on the disk and pinned, files inside it as they come", async () => {
  const vault = new TestVault();
  const disk = Promise.withResolvers<void>();
  vault.disk = () => disk.promise;
  const told: string[] = [];
  const adding = (async () => {
    for await (const { name } of vault.add(files("d/a", "d/b"))) told.push(name);
  })();
  await quiet();
  assert.deepEqual(told, ["d/a", "d/b"]);
  assert.deepEqual(await vault.pinned(), []);
  disk.resolve();
  await adding;
  assert.deepEqual(told, ["d/a", "d/b", "d"]);
  assert.equal((await vault.pinned()).length, 1);
});

test("roots that come while the disk works share the next flush, and are told in order", async () => {
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

test("a disk that fails ends the add, and no root is told", async () => {
  const vault = new TestVault();
  vault.disk = () => Promise.reject(new Error("no space"));
  const told: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { name } of vault.add(files("d/a", "x"))) told.push(name);
    },
    { message: "no space" },
  );
  assert.deepEqual(told, ["d/a"]);
  assert.deepEqual(await vault.pinned(), []);
  await vault.lock.acquireExclusive();
});

test("what came before an entry that fails is safe and told", async () => {
  const vault = new TestVault();
  const told: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { name } of vault.add(files("one", "two", "d/a", "d/a"))) told.push(name);
    },
    { message: "directory already has entry by that name" },
  );
  assert.deepEqual(told, ["one", "two", "d/a"]);
  assert.equal((await vault.pinned()).length, 2);
});

/** Takes the lock for itself, and gives the CIDs of what was taken away. */
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
  test(`a client that takes its time within a file keeps no collection waiting, and loses nothing: ${JSON.stringify(settings)}`, async () => {
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

test("a collection that waits gets its turn between two files and spares what was built", async () => {
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

test("blocks of an add are safe from a collection only until its roots are told", async () => {
  const vault = new TestVault();
  const events = await Array.fromAsync(vault.add(files("d/a"), { pin: false }));
  await collectGarbage(vault.blocks, vault.pins, () => {});
  for (const { built } of events) assert.equal(built && (await vault.blocks.has(built.cid)), false);
});

test("who leaves early leaves no lock and no guard behind", async () => {
  const vault = new TestVault();
  for await (const _ of vault.add(files(...numbered(50)))) break;
  await vault.lock.acquireExclusive();
  assert.deepEqual(Array.from(vault.pins.guarded()), []);
});

/**
 * Sources that give what comes first and then nothing more, for ever; `asked` once they are waited
 * for.
 */
const silent = {
  "between two entries": () => {
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const entries = async function* (): AsyncGenerator<AddEntry> {
      yield* files("a", "d/b");
      ask();
      await new Promise(() => {});
    };
    return { entries: entries(), asked };
  },
  "within a file": () => {
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const body = async function* () {
      yield randomBytes(2000);
      ask();
      await new Promise(() => {});
    };
    const entries = async function* (): AsyncGenerator<AddEntry> {
      yield* files("a", "d/b");
      yield { path: "d/c", kind: "file", body: body() };
    };
    return { entries: entries(), asked };
  },
};

for (const [where, source] of Object.entries(silent)) {
  test(`who leaves does not wait for a source that is silent ${where}, and leaves nothing behind`, async () => {
    const vault = new TestVault();
    const { entries, asked } = source();
    for await (const { root } of vault.add(entries, { chunker: "size-1000", progress: true })) {
      await asked;
      if (root) break;
    }
    await vault.lock.acquireExclusive();
    assert.deepEqual(Array.from(vault.pins.guarded()), []);
    assert.equal((await vault.pinned()).length, 1);
  });

  test(`a signal ends the wait for a source that is silent ${where}, behind what is there`, async () => {
    const vault = new TestVault();
    const leaving = new AbortController();
    const { entries, asked } = source();
    const told: string[] = [];
    const adding = (async () => {
      for await (const { name } of vault.add(entries, { chunker: "size-1000", signal: leaving.signal }))
        told.push(name);
    })();
    await asked;
    await quiet();
    leaving.abort(new Error("long enough"));
    await assert.rejects(adding, { message: "long enough" });
    assert.deepEqual(told, ["a", "d/b"]);
    await vault.lock.acquireExclusive();
    assert.deepEqual(Array.from(vault.pins.guarded()), []);
  });
}

test("a reader that lags holds up the taking in, at about a thousand events", async () => {
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

test("a rehearsal stores nothing, and refuses hash functions all the same", async () => {
  const [event] = await Array.fromAsync(hashOnly(files("x"), addSettings({})));
  assert.equal(event?.name, "x");
  await assert.rejects(Array.fromAsync(hashOnly(files("x"), addSettings({ hash: "shake-128" }))), {
    message: "potentially insecure hash functions not allowed",
  });
});
