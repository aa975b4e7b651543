/** Tests one mutable namespace on several hosts: the results of concurrent calls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { prefixedStore } from "#node/storage/metadata/prefixed_store.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";
import { NodeError } from "#node/util/errors.ts";
import { MemorySharedStore } from "#test/support/shared_hosts.ts";
import { type Call, emptyTree, type FinishedCall, outcomes, seen, type Tree } from "./model.ts";
import { TestNamespace } from "./test_namespace.ts";

async function hosts(
  count: number,
): Promise<{ readonly shared: MemorySharedStore; readonly namespaces: readonly TestNamespace[] }> {
  const shared = new MemorySharedStore();
  const namespaces: TestNamespace[] = [];
  for (let at = 0; at < count; at += 1) {
    const { blocks, metadata } = await shared.join();
    namespaces.push(new TestNamespace(blocks, metadata, true));
  }
  return { shared, namespaces };
}

const two = async () => {
  const { shared, namespaces } = await hosts(2);
  return { shared, one: namespaces[0] as TestNamespace, other: namespaces[1] as TestNamespace };
};

/** Random numbers below a bound, the same for each seed. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 12) % below;
  };
}

async function look(mfs: TestNamespace, path: string): Promise<string> {
  const found = await mfs.look(path === "" ? "/" : path);
  if ("content" in found) return `file ${found.content}`;
  return `directory ${found.names
    .map((name) => `/${name}`)
    .sort()
    .join(" ")}`;
}

async function run(mfs: TestNamespace, call: Call): Promise<string> {
  const { path } = call;
  if (call.does === "look") return look(mfs, path);
  if (call.does === "write") await mfs.write(path, call.content, { truncate: true });
  else if ("to" in call) await mfs[call.does](path, call.to);
  else if (call.does === "rm") await mfs.rm(path, { recursive: true });
  else await mfs.mkdir(path);
  return "";
}

const names = ["/d", "/e", "/d/x", "/d/y", "/e/x", "/f"] as const;

function someCall(below: (bound: number) => number, content: string): Call {
  const path = () => names[below(names.length)] as string;
  const does = (["mkdir", "rm", "write", "write", "cp", "mv", "look", "look"] as const)[below(8)] as Call["does"];
  if (does === "look") return { does, path: below(4) === 0 ? "" : path() };
  if (does === "mkdir" || does === "rm") return { does, path: path() };
  if (does === "write") return { does, path: path(), content };
  return { does, path: path(), to: path() };
}

/**
 * Runs concurrent callers on all hosts, each with some calls. Then checks that all hosts have the
 * same state, and that one order of the calls leads to it.
 */
async function model(seed: number, { count, batches }: { readonly count: number; readonly batches: number }) {
  const below = random(seed);
  const { shared, namespaces } = await hosts(count);
  shared.log.onStep = async () => {
    for (let turns = below(4); turns > 0; turns -= 1) await nextTurn();
  };
  let tree: Tree = emptyTree;
  let moment = 0;
  for (let batch = 0; batch < batches; batch += 1) {
    const history: FinishedCall[] = [];
    const caller = async (at: number) => {
      for (let calls = 0; calls < 2; calls += 1) {
        const call = someCall(below, `${seed} ${batch} ${at} ${calls}`);
        const from = (moment += 1);
        const result = await run(namespaces[at % count] as TestNamespace, call).catch((error: unknown): undefined => {
          if (!NodeError.is(error)) throw error;
        });
        history.push({ call, result, from, to: (moment += 1) });
      }
    };
    await Promise.all(Array.from({ length: count + 1 }, (_, at) => caller(at)));
    const possible = outcomes(tree, history);
    assert.ok(
      possible.size > 0,
      `seed ${seed}: no order explains ${JSON.stringify(history)} on ${JSON.stringify([...tree])}`,
    );
    const roots = new Set<string>();
    const states: string[] = [];
    for (const mfs of namespaces) {
      roots.add(String(await mfs.cid()));
      states.push(
        JSON.stringify(await Promise.all(["", ...names].map((path) => look(mfs, path).catch(() => undefined)))),
      );
    }
    assert.equal(roots.size, 1, `seed ${seed}: the hosts differ`);
    const fitting = [...possible.values()].filter(
      (state) => JSON.stringify(["", ...names].map((path) => seen(state, path))) === states[0],
    );
    assert.ok(fitting.length > 0, `seed ${seed}: ${states[0]} comes of no order of ${JSON.stringify(history)}`);
    assert.deepEqual(new Set(states).size, 1);
    tree = fitting[0] as Tree;
    // Sometimes the journal becomes part of the root, or a host restarts.
    const mfs = namespaces[below(count)] as TestNamespace;
    if (batch % 5 === 4) await mfs.files.commit({ whole: true });
    if (batch % 7 === 6) mfs.crash();
  }
  return namespaces;
}

test("concurrent calls of several hosts have the results of one order of all calls, and the hosts agree on the state", async () => {
  for (const seed of [1, 2, 145]) await model(seed, { count: 2, batches: 25 });
  for (const seed of [4, 5]) await model(seed, { count: 3, batches: 25 });
});

test("changes of different entries do not conflict: neither host runs a call twice, and both see both changes", async () => {
  const { shared, one, other } = await two();
  await one.mkdir("/d");
  await other.look("/d");
  const commits = shared.log.head;
  await Promise.all([one.write("/d/a", "1", { truncate: true }), other.write("/d/b", "2", { truncate: true })]);
  for (const mfs of [one, other]) assert.deepEqual(await mfs.look("/d"), { names: ["a", "b"] });
  assert.equal(shared.log.head - commits, 2);
});

test("two hosts write into one file at the same time, and both writes are in it", async () => {
  const { one, other } = await two();
  await one.write("/f", "--------");
  const begun = Promise.withResolvers<void>();
  const written = Promise.withResolvers<void>();
  async function* slowly() {
    begun.resolve();
    yield Buffer.from("one");
    await written.promise;
    yield Buffer.from("!");
  }
  const writing = one.write("/f", slowly());
  await begun.promise;
  await other.write("/f", "two", { offset: 4 });
  written.resolve();
  await writing;
  for (const mfs of [one, other]) assert.deepEqual(await mfs.look("/f"), { content: "one!two-" });
});

test("a call runs again after conflicting changes of other hosts, and fails as if it had come after them", async () => {
  const { shared, one, other } = await two();
  await one.mkdir("/d");
  await one.write("/d/f", "1");
  await other.look("/d");
  // The first commit of one host waits until the other has removed the directory of its calls.
  const waits = Promise.withResolvers<void>();
  const removed = Promise.withResolvers<void>();
  shared.log.onStep = async (step) => {
    if (step !== "append") return;
    shared.log.onStep = () => {};
    waits.resolve();
    await removed.promise;
  };
  const copying = one.cp("/d/f", "/d/g");
  const making = one.mkdir("/e");
  await waits.promise;
  await other.rm("/d", { recursive: true });
  removed.resolve();
  await assert.rejects(copying, /file does not exist/);
  await making;
  for (const mfs of [one, other]) assert.deepEqual(await mfs.look("/"), { names: ["e"] });
});

test("a change on a shared store is committed even without flush", async () => {
  const { one, other } = await two();
  await one.mkdir("/d", { flush: false });
  assert.deepEqual(await other.look("/"), { names: ["d"] });
  one.crash();
  assert.deepEqual(await one.look("/"), { names: ["d"] });
});

test("a host without access to the log fails without any change, and continues once it has access", async () => {
  const { shared, one, other } = await two();
  await one.mkdir("/d");
  shared.log.available = false;
  await assert.rejects(one.mkdir("/e"), { code: "STORE_UNAVAILABLE" });
  await assert.rejects(one.look("/"), { code: "STORE_UNAVAILABLE" });
  shared.log.available = true;
  assert.deepEqual(await one.look("/"), { names: ["d"] });
  shared.log.onStep = (step) => {
    if (step === "append") shared.log.available = false;
  };
  await assert.rejects(one.mkdir("/f"), { code: "STORE_UNAVAILABLE" });
  shared.log.onStep = () => {};
  shared.log.available = true;
  for (const mfs of [one, other]) assert.deepEqual(await mfs.look("/"), { names: ["d"] });
});

test("a root that one host stores leaves later changes of other hosts in the journal, and garbage collection spares all of them", async () => {
  const { one, other } = await two();
  await one.mkdir("/a");
  await other.mkdir("/b");
  await other.write("/b/f", "kept");
  await one.files.commit({ whole: true });
  await other.write("/b/g", "too");
  one.crash();
  assert.deepEqual(await one.look("/b"), { names: ["f", "g"] });
  const roots = (await one.files.roots()).map(String);
  assert.ok(roots.includes(String(await other.cid("/b/g"))), "of the journal of another host");
  assert.ok(roots.includes(String(await other.cid("/"))), "the tree as it is");
});

test("a namespace of one host reads nothing for a call, and a shared one reads the log once per call", async () => {
  const inner = memoryMetadata();
  let reads = 0;
  const counted: MetadataStore = {
    ...inner,
    get: (key) => inner.get(key).finally(() => (reads += 1)),
    range: (range) => {
      reads += 1;
      return inner.range(range);
    },
  };
  const alone = new TestNamespace(undefined, counted);
  await alone.mkdir("/d");
  reads = 0;
  for (let at = 0; at < 10; at += 1) {
    await alone.write(`/d/${at}`, "content");
    await alone.look("/d");
  }
  assert.equal(reads, 0);
  const { metadata, blocks, shared } = await new MemorySharedStore().join();
  const host = new TestNamespace(blocks, metadata, true);
  await host.mkdir("/d");
  const { reads: looks } = shared.counts;
  for (let at = 0; at < 10; at += 1) await host.look("/d");
  assert.equal(shared.counts.reads - looks, 10);
});

test("journals of earlier versions can be read, and earlier versions can continue this journal", async () => {
  const metadata = memoryMetadata();
  const mfs = new TestNamespace(undefined, metadata);
  for (const name of ["a", "b"]) await mfs.mkdir(`/${name}`);
  await mfs.files.commit({ whole: true });
  // An earlier version counts from 0 again once the root is stored, and does not know the key of
  // the numbers.
  const key = (at: number) => `files/change/${String(at).padStart(16, "0")}`;
  const put = ["c", String(await mfs.cid("/a")), 4];
  await metadata.transaction((writer) => writer.put(key(0), Buffer.from(JSON.stringify({ at: [], put }))));
  mfs.crash();
  await mfs.mkdir("/c/d");
  mfs.crash();
  assert.deepEqual(await mfs.look("/"), { names: ["a", "b", "c"] });
  assert.deepEqual(await mfs.look("/c"), { names: ["d"] });
  const keys = (await Array.fromAsync(metadata.range({ prefix: "files/change/" }))).map(([found]) => found);
  assert.deepEqual(keys, [key(0), key(2)]);
  await mfs.files.commit({ whole: true });
  assert.deepEqual(await Array.fromAsync(metadata.range({ prefix: "files/change/" })), []);
});

test("a change that another host makes while roots are determined for garbage collection is visible afterwards", async () => {
  const shared = new MemorySharedStore();
  const a = await shared.join();
  const b = await shared.join();
  const other = new TestNamespace(b.blocks, b.metadata, true);
  let meanwhile = async () => {};
  const { metadata } = a;
  const watched: MetadataStore = {
    ...prefixedStore(metadata, ""),
    async *range(range) {
      await meanwhile();
      yield* metadata.range(range);
    },
  };
  const one = new TestNamespace(a.blocks, watched, true);
  await one.mkdir("/a");
  meanwhile = async () => {
    meanwhile = async () => {};
    await other.mkdir("/b");
  };
  await one.files.roots();
  assert.deepEqual(await one.look("/"), { names: ["a", "b"] });
});

test("a file whose content cannot be stored appears on no host, and neither do its new parents", async () => {
  const { one, other } = await two();
  await one.mkdir("/d");
  const failing = async function* () {
    yield Buffer.from("begun");
    throw new Error("the store is away");
  };
  await assert.rejects(one.write("/d/new/f", failing(), { parents: true }), { message: "the store is away" });
  for (const mfs of [one, other]) assert.deepEqual(await mfs.look("/d"), { names: [] });
});
