/** How the log comes into the index, and what becomes of those who wait for that. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type FeedDeps, PlaceFeed } from "#node/storage/shared/segments/feed.ts";
import { SegmentNumbers } from "#node/storage/shared/segments/numbers.ts";
import { Places } from "#node/storage/shared/segments/places.ts";
import { SharedStore } from "./hosts.ts";

/** What goes wrong here stands still. */
const bound = { timeout: 120_000 };

async function feedOf(t: TestContext, deps: Partial<FeedDeps> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-feed-"));
  const places = await Places.open(folder, () => {});
  const feed = new PlaceFeed({
    places,
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
    await places.close();
    await rm(folder, { recursive: true, force: true });
  });
  return feed;
}

const commit = (position: number, blocks = 1) => ({
  position,
  session: 1,
  entries: [{ kind: "segment", segment: { id: `1-${position}`, bytes: 1, blocks } }] as const,
});
const removal = (position: number) => ({
  position,
  session: 1,
  entries: [{ kind: "removed", epoch: position, rescued: { cids: [] } }] as const,
});

test("a commit that comes at the moment in which the index has caught up is brought into it", bound, async (t) => {
  const decided = Promise.withResolvers<void>();
  const feed = await feedOf(t, { onDecided: () => decided.resolve() });
  feed.apply(commit(1));
  await feed.settled();
  // Nobody waits for the index itself.
  feed.apply(removal(2));
  await decided.promise;
});

test("a long log comes into the index step by step: it is not held as a whole", bound, async (t) => {
  const [commits, blocks, ahead] = [12, 4100, 8];
  const behind: number[] = [];
  const feed: PlaceFeed = await feedOf(t, {
    load: async ({ id }) => {
      const position = Number(id.slice(2));
      behind.push(position - feed.position);
      return Array.from({ length: blocks }, (_, at) => {
        const multihash = Buffer.from(`1220${"0".repeat(64)}`, "hex");
        multihash.writeUInt32BE(position * blocks + at, 2);
        return { multihash, form: 0, offset: at, length: 1 };
      });
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

test("of segments with many blocks few are fetched ahead", bound, async (t) => {
  let [fetching, most] = [0, 0];
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

test("who waits for the index when it is closed is told so, and who asks afterwards as well", bound, async (t) => {
  const gate = Promise.withResolvers<void>();
  const feed = await feedOf(t, { load: () => gate.promise.then(() => []) });
  feed.apply(commit(1));
  // Not taken together with what comes before.
  feed.reset();
  const waiting = assert.rejects(feed.settled(), { code: "STORE_CLOSED" });
  const closing = feed.close();
  gate.resolve();
  await closing;
  await waiting;
  await assert.rejects(feed.settled(), { code: "STORE_CLOSED" });
});

test("a host that ends while it reads the log ends", bound, async () => {
  const store = new SharedStore();
  store.log.pageSize = 1;
  const [one, other] = [await store.open(), await store.open()];
  for (const key of ["a", "b", "c"])
    await one.log.commit(() => ({ entries: [{ kind: "metadata", changes: [[key, Buffer.from(key)]] }], result: 0 }));
  const [reads, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
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
