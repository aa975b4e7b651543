/** How the log is added to the index, and what happens to callers that wait for it. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Commit } from "#node/storage/shared/log.ts";
import { BlockIndex } from "#node/storage/shared/segments/block_index.ts";
import { type FeedDeps, IndexFeed } from "#node/storage/shared/segments/index_feed.ts";
import { SegmentNumbers } from "#node/storage/shared/segments/numbers.ts";
import { eventually } from "#test/support/eventually.ts";
import { SharedStore } from "./hosts.ts";

/** A bug in this code usually makes a caller wait forever. */
const bound = { timeout: 120_000 };

const feedOf = async (t: TestContext, deps?: Partial<FeedDeps>) => (await indexAndFeed(t, deps)).feed;

async function indexAndFeed(t: TestContext, deps: Partial<FeedDeps> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-feed-"));
  const blockIndex = await BlockIndex.open(folder, () => {});
  const feed = new IndexFeed({
    index: blockIndex,
    numbers: new SegmentNumbers([]),
    load: async () => [],
    readList: async () => [],
    onFound: () => {},
    onDecided: () => {},
    onDropped: () => {},
    ...deps,
  });
  t.after(async () => {
    await feed.close();
    await blockIndex.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { feed, blockIndex };
}

const commit = (position: number, blocks = 1) => ({
  position,
  session: 1,
  entries: [{ kind: "segment", segment: { id: `1-${position}`, bytes: 1, blocks } }] as const,
});
const positionOf = (id: string) => Number(id.slice(2));
/** The blocks of a segment. */
const blocksOf = (id: string, count: number) =>
  Array.from({ length: count }, (_, at) => {
    const multihash = Buffer.from(`1220${"0".repeat(64)}`, "hex");
    multihash.writeUInt32BE(positionOf(id) * count + at, 2);
    return { multihash, form: 0, offset: at, length: 1 };
  });
const removal = (position: number) => ({
  position,
  session: 1,
  entries: [{ kind: "removed", epoch: position, rescued: { cids: [] } }] as const,
});

test("a commit that arrives just when the index has caught up is added to it", bound, async (t) => {
  const decided = Promise.withResolvers<void>();
  const feed = await feedOf(t, { onDecided: () => decided.resolve() });
  feed.apply(commit(1));
  await feed.settled();
  // Nobody waits for the index itself.
  feed.apply(removal(2));
  await decided.promise;
});

test("a long log is added to the index step by step and is never in memory as a whole", bound, async (t) => {
  const commits = 12;
  const blocks = 4100;
  const ahead = 8;
  const behind: number[] = [];
  const feed: IndexFeed = await feedOf(t, {
    load: async ({ id }) => {
      behind.push(positionOf(id) - feed.position);
      return blocksOf(id, blocks);
    },
  });
  // The index is no longer empty.
  feed.apply(commit(1));
  feed.caughtUp();
  await feed.indexed();
  for (let position = 2; position <= commits; position += 1) feed.apply(commit(position));
  await feed.indexed();
  assert.equal(feed.position, commits);
  assert.equal(behind.length, commits);
  assert.ok(Math.max(...behind) <= ahead, `${Math.max(...behind)} commits behind`);
});

test("indices of segments with many blocks are fetched ahead in small numbers", bound, async (t) => {
  let fetching = 0;
  let most = 0;
  const load = async () => {
    fetching += 1;
    most = Math.max(most, fetching);
    await nextTurn();
    fetching -= 1;
    return [];
  };
  const feed = await feedOf(t, { load });
  for (let position = 1; position <= 6; position += 1) feed.apply(commit(position, 60_000));
  await feed.settled();
  assert.equal(most, 2);
});

interface Trouble {
  /** A segment whose index cannot be read at first. */
  readonly unreadable?: string;
  /** Whether the disk refuses writes at first. */
  readonly isFull?: boolean;
}

const blocksPerSegment = 5000;

/**
 * Returns what is written, and how often each index is fetched, until everything is found. Faults
 * end when they were reported three times.
 */
async function collect(t: TestContext, commits: readonly Commit[], { unreadable, isFull = false }: Trouble = {}) {
  let reports = 0;
  const fetched = new Map<string, number>();
  const load = async ({ id }: { readonly id: string }) => {
    fetched.set(id, (fetched.get(id) ?? 0) + 1);
    if (id === unreadable && reports < 3) throw new Error("it cannot be read");
    return blocksOf(id, blocksPerSegment);
  };
  const { feed, blockIndex } = await indexAndFeed(t, { load });
  let chunks = 0;
  let bytes = 0;
  const write = blockIndex.write.bind(blockIndex);
  blockIndex.write = async (changes) => {
    if (isFull && reports < 3) throw new Error("the disk is full");
    await write(changes);
    for (const [, chunk] of changes.chunks ?? []) {
      chunks += 1;
      bytes += chunk.length;
    }
  };
  for (const each of commits) feed.apply(each);
  const isSettled = () => feed.settled().then(() => true);
  await eventually("everything is found", () => isSettled().catch(() => ++reports < 0));
  for (const id of fetched.keys())
    for (const { multihash } of blocksOf(id, blocksPerSegment).slice(0, 3))
      assert.equal(feed.find(multihash).length, 1);
  return { chunks, bytes, fetched };
}

test("nothing else is fetched or written again while an index cannot be read", bound, async (t) => {
  const commits = Array.from({ length: 20 }, (_, at) => commit(at + 1, blocksPerSegment));
  const usual = await collect(t, commits);
  const { chunks, bytes, fetched } = await collect(t, commits, { unreadable: "1-18" });
  assert.ok(fetched.delete("1-18"));
  assert.deepEqual(new Set(fetched.values()), new Set([1]));
  assert.equal(bytes, usual.bytes);
  // A chunk before a failure is not full.
  assert.ok(chunks <= usual.chunks + 2, `${chunks} chunks instead of ${usual.chunks}`);
});

test("no part of a commit is written while one of its indices cannot be read", bound, async (t) => {
  const segments = [1, 2].map((number) => ({ id: `1-${number}`, bytes: 1, blocks: blocksPerSegment }));
  const commits: Commit[] = [{ position: 2, session: 1, entries: [{ kind: "replaced", segments: [], by: segments }] }];
  const usual = await collect(t, commits);
  const { bytes, fetched } = await collect(t, commits, { unreadable: "1-2" });
  assert.equal(fetched.get("1-1"), 1);
  assert.equal(bytes, usual.bytes);
});

test("nothing is fetched or sorted again while the disk is full", bound, async (t) => {
  const commits = Array.from({ length: 3 }, (_, at) => commit(at + 1, blocksPerSegment));
  const usual = await collect(t, commits);
  assert.deepEqual(await collect(t, commits, { isFull: true }), usual);
});

test("callers that wait for the index when it is closed are rejected, and so are later ones", bound, async (t) => {
  const gate = Promise.withResolvers<void>();
  const feed = await feedOf(t, { load: () => gate.promise.then(() => []) });
  feed.apply(commit(1));
  // A reset is not processed together with the commits before it.
  feed.reset();
  const waiting = assert.rejects(feed.settled(), { code: "STORE_CLOSED" });
  const closing = feed.close();
  gate.resolve();
  await closing;
  await waiting;
  await assert.rejects(feed.settled(), { code: "STORE_CLOSED" });
});

test("a host can end while it reads the log", bound, async () => {
  const store = new SharedStore();
  store.log.pageSize = 1;
  const one = await store.open();
  const other = await store.open();
  for (const key of ["a", "b", "c"])
    await one.log.commit(() => ({ entries: [{ kind: "metadata", changes: [[key, Buffer.from(key)]] }], result: 0 }));
  const reads = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  store.log.onStep = (step, session) => {
    if (step !== "read" || session !== other.log.session) return;
    reads.resolve();
    return gate.promise;
  };
  const look = assert.rejects(other.log.refresh(), { code: "STORE_CLOSED" });
  await reads.promise;
  await other.blocks.close();
  gate.resolve();
  await other.log.close();
  await look;
  await one.close();
});
