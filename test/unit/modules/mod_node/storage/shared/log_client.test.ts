import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Applier, Commit, Entry, Position, StoreLock } from "#node/storage/shared/log.ts";
import { failure } from "#node/util/errors.ts";
import { MemoryLog } from "#test/support/engines/memory_log.ts";
import { eventually } from "#test/support/eventually.ts";

const set = (key: string, value = "1"): Entry => ({ kind: "metadata", changes: [[key, Buffer.from(value)]] });
const write = (...entries: readonly Entry[]) => ({ entries, result: undefined });
const segment = (id: string): Entry => ({ kind: "segment", segment: { id, bytes: 1, blocks: 1 } });

/** Records the commits that it receives. */
class Notes implements Applier {
  position: Position;
  readonly commit = "one of this log";
  readonly commits: Commit[] = [];
  resets = 0;
  constructor(position = 0) {
    this.position = position;
  }
  apply(commit: Commit): void {
    this.commits.push(commit);
  }
  reset(): void {
    this.resets += 1;
    this.commits.length = 0;
  }
  get keys(): string[] {
    return this.commits.flatMap(({ entries }) =>
      entries.flatMap((entry) => (entry.kind === "metadata" ? entry.changes.map(([key]) => key) : [])),
    );
  }
  get positions(): number[] {
    return this.commits.map(({ position }) => position);
  }
}

function hostOf(log: MemoryLog, notes = new Notes()) {
  const client = log.open();
  client.follow(notes);
  return { client, notes };
}

test("every host receives every commit once and in order, including its own, from the position of its copy", async () => {
  const log = new MemoryLog();
  log.pageSize = 2;
  const a = hostOf(log);
  const b = hostOf(log);
  for (let at = 0; at < 5; at += 1) {
    await a.client.commit(() => write(set(`a${at}`)));
    await b.client.commit(() => write(set(`b${at}`)));
  }
  await a.client.refresh();
  const all = Array.from({ length: 10 }, (_, at) => at + 1);
  assert.deepEqual(a.notes.positions, all);
  assert.deepEqual(b.notes.positions, all);
  assert.deepEqual(
    a.notes.commits.map(({ session }) => session),
    [1, 2, 1, 2, 1, 2, 1, 2, 1, 2],
  );
  const late = new Notes(7);
  const early = new Notes(3);
  const c = hostOf(log, late);
  c.client.follow(early);
  await c.client.refresh();
  assert.deepEqual(late.positions, [8, 9, 10]);
  assert.deepEqual(early.positions, [4, 5, 6, 7, 8, 9, 10]);
});

test("a host that commits while it reads needs no snapshot when the log is trimmed up to its commit", async () => {
  const log = new MemoryLog();
  const { client, notes } = hostOf(log);
  const isRead = Promise.withResolvers<void>();
  log.onStep = (step) => (step === "read" ? isRead.promise : undefined);
  const look = client.refresh();
  await client.commit(() => write(set("a")));
  log.trim();
  isRead.resolve();
  await look;
  assert.deepEqual([notes.keys, notes.positions, notes.resets], [["a"], [1], 0]);
  assert.equal(client.counts.snapshots, 0);
});

test("a host that commits while it reads drops its commit when the log turns out to have lost it", async () => {
  const log = new MemoryLog();
  const { client, notes } = hostOf(log);
  const isRead = Promise.withResolvers<void>();
  log.onStep = (step) => (step === "read" ? isRead.promise : undefined);
  const look = client.refresh();
  await client.commit(() => write(set("lost")));
  log.replace([set("other")]);
  isRead.resolve();
  await look;
  await client.commit(() => write(set("next")));
  assert.deepEqual(notes.keys, ["other", "next"]);
});

test("calls that arrive while a commit is written share the next one, at the newest state", async () => {
  const log = new MemoryLog();
  const { client } = hostOf(log);
  const heads = await Promise.all(
    Array.from({ length: 20 }, (_, at) => client.commit((head) => ({ entries: [set(`k${at}`)], result: head }))),
  );
  assert.deepEqual(heads, [0, ...Array(19).fill(1)]);
  assert.equal(log.head, 2);
});

test("a host that is always slower than others gets its turn", async () => {
  const log = new MemoryLog();
  const slow = hostOf(log);
  const fast = hostOf(log);
  await fast.client.refresh();
  const commits: Promise<void>[] = [];
  const hook = async (step: string, session: number) => {
    if (step !== "append" || session !== slow.client.session) return;
    commits.push(fast.client.commit(() => write(set("faster"))));
    for (let turns = 0; turns < 10; turns += 1) await turn();
  };
  log.onStep = hook;
  await slow.client.commit(() => write(set("slower")));
  log.onStep = () => {};
  await Promise.all(commits);
  // It was too late four times; then the others waited.
  assert.equal(slow.client.counts.races, 4);
  assert.deepEqual(
    log.commits.map(({ session }) => session),
    [2, 2, 2, 2, 1, 2],
  );
});

test("a host that fails when its turn has come delays nobody", { timeout: 120_000 }, async () => {
  const log = new MemoryLog();
  const slow = hostOf(log);
  const fast = hostOf(log);
  await fast.client.refresh();
  let appends = 0;
  log.onStep = async (step, session) => {
    if (step !== "append" || session !== slow.client.session) return;
    appends += 1;
    if (appends === 5) throw failure("STORE_UNAVAILABLE", { reason: "so it is" });
    await fast.client.commit(() => write(set("faster")));
  };
  await assert.rejects(
    slow.client.commit(() => write(set("slower"))),
    { code: "STORE_UNAVAILABLE" },
  );
  await fast.client.commit(() => write(set("later")));
  assert.equal(log.head, 5);
});

test("a call without entries, or one that throws, settles at the newest state", async () => {
  const log = new MemoryLog();
  const a = hostOf(log);
  const b = hostOf(log);
  await b.client.refresh();
  await a.client.commit(() => write(set("k")));
  assert.equal(await b.client.commit((head) => ({ entries: [], result: head })), 1);
  await a.client.commit(() => write(set("k")));
  await assert.rejects(
    b.client.commit((head) => {
      throw new Error(`at ${head}`);
    }),
    /^Error: at 2$/,
  );
  assert.equal(log.head, 2);
});

test("a host before the beginning of the log receives the current state in order of position", async () => {
  const log = new MemoryLog();
  log.pageSize = 2;
  const a = hostOf(log);
  for (const key of ["a", "b", "c", "a", "d", "e"]) await a.client.commit(() => write(set(key)));
  await a.client.commit(() => write({ kind: "metadata", changes: [["e", undefined]] }));
  log.trim(4);
  const b = hostOf(log, new Notes(3));
  const c = hostOf(log, new Notes(4));
  await b.client.refresh();
  await c.client.refresh();
  assert.equal(b.notes.resets, 1);
  assert.deepEqual(b.notes.keys, ["b", "c", "a", "d"]);
  assert.deepEqual(b.notes.positions, [2, 3, 4, 5, 7]);
  assert.equal(b.client.applied, 7);
  assert.equal(c.notes.resets, 0);
  assert.deepEqual(c.notes.positions, [5, 6, 7]);
});

test("a host whose session has ended writes nothing, and joins again when its calls are over", async () => {
  const log = new MemoryLog();
  const joined = Promise.withResolvers<() => Promise<void>>();
  const { client } = hostOf(log);
  client.onSessionLost(async (join) => {
    const over = Promise.withResolvers<void>();
    joined.resolve(async () => {
      await join();
      over.resolve();
    });
    await over.promise;
  });
  await client.commit(() => write(segment("1-0")));
  log.endSession(1);
  const lost = { code: "SESSION_LOST" };
  await assert.rejects(
    client.commit(() => write(set("k"))),
    lost,
  );
  await assert.rejects(
    client.commit(() => write(set("k"))),
    lost,
  );
  await client.refresh();
  const join = await joined.promise;
  await join();
  assert.equal(client.session, 2);
  await eventually("commits are taken", () =>
    client
      .commit(() => write(set("k")))
      .then(
        () => true,
        () => false,
      ),
  );
  // The session of this segment was lost, so its object may have been deleted as an orphan.
  await assert.rejects(
    client.commit(() => write(segment("1-1"))),
    lost,
  );
  await client.commit(() => write(segment("2-0")));
  assert.deepEqual(await client.sessions(), [2]);
});

test("only one host has a lock at a time, and a commit with a lost lock is refused", async () => {
  const log = new MemoryLog();
  const a = hostOf(log);
  const b = hostOf(log);
  let stalled: StoreLock | undefined;
  const acquired = a.client.withLock("gc", async (lock) => {
    stalled = lock;
    assert.equal(await b.client.withLock("gc", async () => 1), undefined);
    assert.deepEqual(await b.client.withLock("merge", async () => 1), { result: 1 });
    await a.client.commit(() => write(set("first")), lock);
    log.endSession(a.client.session);
    const taken = await b.client.withLock("gc", async (next) => {
      assert.ok(next.fence > lock.fence);
      assert.ok(lock.signal.aborted);
    });
    assert.deepEqual(taken, { result: undefined });
    await assert.rejects(
      a.client.commit(() => write(set("second")), lock),
      { code: "SESSION_LOST" },
    );
    await eventually("it has joined", () =>
      a.client
        .commit(() => write(set("third")))
        .then(
          () => true,
          () => false,
        ),
    );
    return await Promise.allSettled([
      a.client.commit(() => write(set("fourth")), lock),
      a.client.commit(() => write(set("fifth"))),
      a.client.commit(() => write(set("sixth")), lock),
    ]);
  });
  const codes = (await acquired)?.result.map((outcome) =>
    outcome.status === "rejected" ? outcome.reason.code : "done",
  );
  assert.deepEqual(codes, ["LOCK_LOST", "done", "LOCK_LOST"]);
  assert.ok(stalled?.signal.aborted);
  const keys = log.commits.flatMap(({ entries }) =>
    entries.map((entry) => entry.kind === "metadata" && entry.changes[0]?.[0]),
  );
  assert.deepEqual(keys, ["first", "third", "fifth"]);
});

test("concurrent commits of several hosts form the same log everywhere", async () => {
  const log = new MemoryLog();
  log.pageSize = 3;
  let seed = 7;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return (seed >> 8) % below;
  };
  log.onStep = async () => {
    for (let turns = random(4); turns > 0; turns -= 1) await turn();
    if (random(20) === 0) log.trim(random(log.head + 1));
  };
  const hosts = Array.from({ length: 3 }, () => hostOf(log));
  const work = async ({ client, notes }: (typeof hosts)[0], name: string) => {
    for (let at = 0; at < 30; at += 1) {
      const key = `${name}${at % 5}`;
      if (random(3) === 0) await client.refresh();
      else {
        await client.commit(() => write(set(key)));
        assert.ok(notes.keys.includes(key));
      }
    }
  };
  await Promise.all(hosts.flatMap((host, at) => ["a", "b"].map((name) => work(host, `${name}${at}`))));
  const last = new Map(
    log.commits.flatMap(({ position, entries }) =>
      entries.flatMap((entry) =>
        entry.kind === "metadata" ? entry.changes.map(([key]) => [key, position] as const) : [],
      ),
    ),
  );
  for (const { client, notes } of hosts) {
    await client.refresh();
    assert.equal(client.applied, log.head);
    assert.deepEqual(
      notes.positions,
      notes.positions.toSorted((x, y) => x - y),
    );
    assert.equal(new Set(notes.positions).size, notes.positions.length);
    const seen = new Map(
      notes.commits.flatMap(({ position, entries }) =>
        entries.flatMap((entry) =>
          entry.kind === "metadata" ? entry.changes.map(([key]) => [key, position] as const) : [],
        ),
      ),
    );
    assert.deepEqual([...seen].sort(), [...last].sort());
  }
});
