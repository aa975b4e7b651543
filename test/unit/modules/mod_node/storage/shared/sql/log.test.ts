import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { Applier, Commit, Entry } from "#node/storage/shared/log.ts";
import type { LogClient } from "#node/storage/shared/log_client.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { openSqlLog } from "#node/storage/shared/sql/open.ts";
import { type SqlLogOptions, sqlSettings } from "#node/storage/shared/sql/settings.ts";
import { NodeError } from "#node/util/errors.ts";
import { FaultyTcp } from "#test/support/engines/faulty_tcp.ts";
import { presentState } from "#test/support/engines/memory_log.ts";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";
import { eventually } from "#test/support/eventually.ts";

const skip = noPostgres;
let server: Promise<Postgres> | undefined;
const postgres = () => (server ??= Postgres.start());
const opened: LogClient[] = [];
after(async () => {
  // Also closes the logs of failed tests, because they would look for their database forever.
  await Promise.allSettled(opened.map((log) => log.close()));
  await (await server)?.[Symbol.asyncDispose]();
});

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();
const set = (key: string, value = "1"): Entry => ({ kind: "metadata", changes: [[key, bytes(value)]] });
const write = (...entries: readonly Entry[]) => ({ entries, result: undefined });

let peers = 0;
let stores = 0;
const newStore = async () => `${(await postgres()).url()}?schema=store_${++stores}`;

class Notes implements Applier {
  position = 0;
  commits: Commit[] = [];
  settled = async (): Promise<void> => {};
  apply(commit: Commit): void {
    this.commits.push(commit);
  }
  reset(): void {
    this.commits = [];
  }
}

async function openLog(options: SqlLogOptions) {
  const made = await openSqlLog(options);
  opened.push(made.log);
  return made;
}

/** Options of a host that waits for the database as long as necessary, even on a busy machine. */
async function hostOf(url: string, options: Partial<SqlLogOptions> = {}) {
  const { log, counts } = await openLog({
    url,
    name: "test",
    peer: `peer ${++peers}`,
    pollMs: 50,
    commitMs: 120_000,
    refreshMs: 120_000,
    ...options,
  });
  const notes = new Notes();
  log.follow(notes);
  const metadata = await SharedMetadata.open(log, memoryMetadata());
  return {
    log,
    counts,
    notes,
    metadata,
    async close() {
      await metadata.close();
      await log.close();
    },
  };
}

type Host = Awaited<ReturnType<typeof hostOf>>;

/**
 * Options of a host that soon gives up: while the database is unreachable, and sometimes on a busy
 * machine.
 */
async function hastyHostOf(url: string, options: Partial<SqlLogOptions>): Promise<Host> {
  let host: Host | undefined;
  await eventually("a host that soon gives up is open", async () => {
    host = await hostOf(url, options).catch(unlessAway);
    return host;
  });
  return host as unknown as Host;
}

const isReached = ({ log }: Host): Promise<boolean> =>
  log.refresh().then(
    () => true,
    () => false,
  );

const unlessAway = (error: unknown): undefined => {
  if (!NodeError.is(error) || error.code !== "STORE_UNAVAILABLE") throw error;
};

test("hosts that open a new store concurrently share one log, and lose no step of a counter", { skip }, async () => {
  const url = await newStore();
  // Rare renewals, because round trips are counted.
  const slowly = { pollMs: 600_000, leaseMs: 3_600_000 };
  const hosts = await Promise.all([hostOf(url, slowly), hostOf(url, slowly), hostOf(url, slowly)]);
  const count = ({ metadata }: (typeof hosts)[0]) =>
    metadata.transaction((writer) => writer.put("n", bytes(String(Number(text(writer.get("n")) ?? 0) + 1))));
  await Promise.all(hosts.flatMap((host) => Array.from({ length: 20 }, () => count(host))));
  for (const { metadata } of hosts) assert.equal(text(await metadata.get("n")), "60");
  const [a, b] = hosts;
  await a.log.refresh();
  await b.log.refresh();
  assert.deepEqual(sorted(a.notes.commits), sorted(b.notes.commits));
  assert.deepEqual(await a.log.sessions(), hosts.map(({ log }) => log.session).sort());
  // One round trip for each commit, when nobody else writes.
  const before = a.counts.roundTrips;
  await a.log.commit(() => write(set("alone")));
  assert.ok(a.counts.roundTrips <= before + 2);
  await Promise.all(hosts.map((host) => host.close()));
});

test("a host before the beginning of the log reads the same state from the tables as from the log", {
  skip,
}, async () => {
  const url = await newStore();
  const a = await hostOf(url, { keepCommits: 0, keepMs: 0 });
  const id = a.log.session.toString(36);
  const segment = (nth: number, index?: Uint8Array) => ({
    id: `${id}-${nth}`,
    bytes: 2 ** 40,
    blocks: nth,
    ...(index && { index }),
  });
  const list = { cids: [bytes("\u0000\u00ff")] };
  const steps: readonly (readonly Entry[])[] = [
    [set("a"), set("\u0000b", "")],
    [
      { kind: "segment", segment: segment(0, bytes("index")) },
      { kind: "segment", segment: segment(1) },
    ],
    [set("a", "2"), set("c")],
    [{ kind: "condemned", epoch: 1, upTo: 2, list }],
    [{ kind: "acknowledged", epoch: 1, rescued: { object: "x", count: 3 } }],
    [
      { kind: "metadata", changes: [["c", undefined]] },
      { kind: "replaced", segments: [`${id}-0`], by: [segment(2)] },
    ],
    [{ kind: "removed", epoch: 1, rescued: list }],
    [set("d"), { kind: "metadata", changes: [["d", undefined]] }],
  ];
  for (const entries of steps) await a.log.commit(() => write(...entries));
  assert.deepEqual(
    a.notes.commits.map(({ entries }) => entries),
    steps,
  );
  await ask(url, "select SCHEMA.trim_log(0, interval '0')");
  const b = await hostOf(url);
  await b.log.refresh();
  assert.equal(b.log.counts.snapshots, 1);
  const expected = presentState(a.notes.commits).map(({ entries, ...rest }) => ({
    ...rest,
    // Acknowledgements are not needed after the decision.
    entries: entries.filter(({ kind }) => kind !== "acknowledged"),
  }));
  const rowCount = expected.filter(({ entries, position }) => entries.length > 0 || position === steps.length);
  assert.deepEqual(sorted(b.notes.commits), sorted(rowCount));
  assert.equal(text(await b.metadata.get("a")), "2");
  assert.equal(await b.metadata.has("c"), false);
  await Promise.all([a.close(), b.close()]);
});

test("a snapshot of several pages is complete, however long the host takes to apply each", { skip }, async () => {
  const url = await newStore();
  const a = await hostOf(url);
  const keys = Array.from({ length: 1100 }, (_, at) => `k${at}`);
  // Commits that end in the first page, in the second one, and in the last one.
  for (const from of [0, 300, 600, 1090]) await a.log.commit(() => write(...keys.slice(from).map((key) => set(key))));
  await ask(url, "select SCHEMA.trim_log(0, interval '0')");
  const b = await hostOf(url);
  // Longer than the database takes to report that there are no more rows.
  b.notes.settled = () => sleep(100);
  await b.log.refresh();
  const found = b.notes.commits.flatMap(({ entries }) =>
    entries.flatMap((entry) => ("changes" in entry ? entry.changes : [])),
  );
  assert.deepEqual(found.map(([key]) => key).sort(), keys.toSorted());
  assert.equal(b.log.counts.snapshots, 1);
  await Promise.all([a.close(), b.close()]);
});

test("notices reach other hosts, and a restart of the database is survived", { skip }, async () => {
  const url = await newStore();
  // The hosts poll the database so rarely that only a notice arrives in time.
  const [a, b] = await Promise.all([
    hostOf(url, { pollMs: 600_000 }),
    hastyHostOf(url, { pollMs: 600_000, refreshMs: 2000 }),
  ]);
  await eventually("it is reached", () => isReached(b));
  await eventually("it listens", async () => {
    await a.log.commit(() => write(set("k")));
    return b.notes.commits.length > 0;
  });
  const database = await postgres();
  await database.kill();
  const late = a.log.commit(() => write(set("k", "late")));
  await assert.rejects(b.log.refresh(), { code: "STORE_UNAVAILABLE" });
  await database.start();
  await late;
  await eventually("it is reached again", () => isReached(b));
  assert.equal(text(await b.metadata.get("k")), "late");
  await Promise.all([a.close(), b.close()]);
});

test("a host that was silent for too long is excluded, loses its lock, and joins again", { skip }, async () => {
  const url = await newStore();
  const stalled = await hostOf(url);
  const other = await hostOf(url);
  const first = stalled.log.session;
  await stalled.log.withLock("gc", async (lock) => {
    assert.equal(await other.log.withLock("gc", async () => 1), undefined);
    await stalled.log.commit(() => write(set("k")), lock);
    await ask(url, `update SCHEMA.sessions set lease = clock_timestamp() where id = ${first}`);
    assert.ok(!(await other.log.sessions()).includes(first));
    const taken = await other.log.withLock("gc", async ({ fence }) => fence);
    assert.equal(taken?.result, lock.fence + 1);
    // The error depends on which loss the host notices first.
    await assert.rejects(
      stalled.log.commit(() => write(set("k")), lock),
      ({ code }: NodeError) => code === "SESSION_LOST" || code === "LOCK_LOST",
    );
  });
  await eventually("it has joined", () => stalled.log.session !== first);
  await other.log.withLock("gc", async (lock) => other.log.commit(() => write(set("k", "2")), lock));
  await Promise.all([stalled.close(), other.close()]);
});

test("a commit whose response is lost happens once, and a silent database is given up in time", {
  skip,
}, async () => {
  const url = new URL(await newStore());
  await using proxy = await FaultyTcp.start(Number(url.port));
  url.port = String(proxy.port);
  const host = await hostOf(url.href);
  await host.log.commit(() => write(set("before")));
  const lost = proxy.loseResponse(/done/);
  await Promise.all([host.log.commit(() => write(set("lost"))), lost]);
  assert.deepEqual(keysIn(host.notes), ["before", "lost"]);
  await host.close();

  const hasty = await hastyHostOf(url.href, { commitMs: 4000, refreshMs: 500 });
  const commits = (key: string) =>
    hasty.log
      .commit(() => write(set(key)))
      .then(
        () => true,
        () => false,
      );
  await eventually("it is reached", () => commits("first"));
  proxy.swallow();
  await assert.rejects(hasty.log.refresh(), { code: "STORE_UNAVAILABLE" });
  await assert.rejects(
    hasty.log.commit(() => write(set("swallowed"))),
    /the response to a commit was lost/,
  );
  proxy.restore();
  await eventually("it is reached again", () => commits("last"));
  assert.ok(keysIn(hasty.notes).filter((key) => key === "swallowed").length <= 1);
  await hasty.close();
});

test("hosts with both addresses continue with all acknowledged commits when a standby takes over", {
  skip,
}, async () => {
  await using first = await Postgres.start();
  await using standby = await first.standby({ synchronous: true });
  const url = `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:${first.port}/postgres?schema=moved`;
  const host = await hostOf(url);
  await host.log.commit(() => write(set("before")));
  await first.kill();
  const during = host.log.commit(() => write(set("during")));
  await standby.promote();
  // The old standby does not wait for a standby of its own.
  await during;
  await eventually("it is reached", () => isReached(host));
  assert.equal(host.log.applied, 2);
  await host.close();
});

const keysIn = ({ commits }: Notes) =>
  commits.flatMap(({ entries }) =>
    entries.flatMap((entry) => (entry.kind === "metadata" ? entry.changes.map(([key]) => key) : [])),
  );

/** `SCHEMA` is the schema of the store. */
async function ask(url: string, statement: string): Promise<readonly Record<string, unknown>[]> {
  const settings = sqlSettings(url);
  const line = new SqlConnection(settings, { name: "test", counts: new SqlCounts() });
  const rows = await line.run(
    async (sql) => [...(await sql.unsafe(statement.replaceAll("SCHEMA", settings.schema)))],
    120_000,
  );
  line.close();
  return rows;
}

/** Without ids, which some responses do not have. */
const sorted = (commits: readonly Commit[]) =>
  commits.map(({ entries, id: _, ...rest }) => ({
    ...rest,
    entries: entries.toSorted((x, y) => (x.kind < y.kind ? -1 : 1)),
  }));

test("a restarted host delays nobody: its earlier sessions have ended", { skip }, async () => {
  const url = await newStore();
  const other = await hostOf(url);
  // A killed host does not look after its session. This one still runs, so its next look is far
  // away.
  const never = 3_600_000;
  const before = await openLog({ url, name: "test", peer: "started again", pollMs: never, leaseMs: never });
  const locked = Promise.withResolvers<void>();
  const killed = before.log.withLock("gc", () => {
    locked.resolve();
    return new Promise<void>(() => {});
  });
  killed.catch(() => {});
  await locked.promise;
  assert.equal(await other.log.withLock("gc", async () => true), undefined);
  const again = await openLog({ url, name: "test", peer: "started again" });
  assert.deepEqual(await other.log.withLock("gc", async () => true), { result: true });
  assert.deepEqual(await other.log.sessions(), [other.log.session, again.log.session]);
  await assert.rejects(
    before.log.commit(() => write(set("late"))),
    { code: "SESSION_LOST" },
  );
  await Promise.all([other.close(), again.log.close(), before.log.close()]);
});

test("removals are deleted when no segment is as old, and sessions when they ended long ago", { skip }, async () => {
  const url = await newStore();
  const a = await hostOf(url);
  await (await hostOf(url)).close();
  const list = { cids: [bytes("cid")] };
  const segment = (nth: number) => ({ id: `${a.log.session.toString(36)}-${nth}`, bytes: 1, blocks: 1 });
  const rows = async () => {
    await ask(url, "update SCHEMA.sessions set lease = clock_timestamp() where ended");
    await ask(url, "select SCHEMA.trim_log(1000, interval '0')");
    const [found] = await ask(
      url,
      "select (select count(*)::integer from SCHEMA.removals) as removals, (select count(*)::integer from SCHEMA.sessions) as sessions",
    );
    return { ...found };
  };
  await a.log.commit(() => write({ kind: "segment", segment: segment(1) }));
  await a.log.commit(() => write({ kind: "condemned", epoch: 1, upTo: 1, list }));
  await a.log.commit(() => write({ kind: "removed", epoch: 1, rescued: list }));
  assert.deepEqual(await rows(), { removals: 2, sessions: 1 });
  await a.log.commit(() => write({ kind: "replaced", segments: [segment(1).id], by: [segment(2)] }));
  // The collection is not decided yet.
  await a.log.commit(() => write({ kind: "condemned", epoch: 2, upTo: 4, list }));
  assert.deepEqual(await rows(), { removals: 1, sessions: 1 });
  await a.close();
});

test("a lock is free again even if the database was unreachable when it was released", { skip }, async () => {
  const direct = await newStore();
  const url = new URL(direct);
  await using proxy = await FaultyTcp.start(Number(url.port));
  url.port = String(proxy.port);
  const other = await hostOf(direct);
  const host = await hastyHostOf(url.href, { commitMs: 500, leaseMs: 3_600_000 });
  await eventually("the host had the lock and could not release it", () =>
    host.log
      .withLock("gc", async () => {
        proxy.refuse();
        return true;
      })
      .catch(unlessAway),
  );
  const isFree = async () => (await other.log.withLock("gc", async () => true)) !== undefined;
  assert.equal(await isFree(), false);
  proxy.restore();
  await eventually("the released lock is free", isFree, { every: 100 });
  await Promise.all([host.close(), other.close()]);
});
