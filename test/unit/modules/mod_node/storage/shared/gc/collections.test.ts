import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { MemoryLog } from "#test/support/engines/memory_log.ts";
import { eventually } from "#test/support/eventually.ts";
import { seeded } from "#test/support/seeded.ts";
import { Bucket, below, type Dag, Host, numberOf } from "./model.ts";

const dag: Dag = [[], [], [0, 1], [], [2, 3]];

function store() {
  const log = new MemoryLog();
  const bucket = new Bucket();
  return { log, bucket, open: (wait?: () => Promise<void>) => Host.open(log, bucket, dag, wait) };
}
const sorted = (numbers: Iterable<number>) => [...numbers].sort((a, b) => a - b);

test("blocks that no pin of any host retains are removed everywhere, and all others stay", async () => {
  const { open } = store();
  const a = await open();
  const b = await open();
  await a.add(2);
  await b.put(4);
  await b.add(1);
  const reports: number[] = [];
  assert.deepEqual(await a.collections.collect({ onRemoved: (cid) => reports.push(numberOf(cid)) }), { removed: 2 });
  assert.deepEqual(sorted(reports), [3, 4]);
  await b.unpin(2);
  assert.deepEqual(await b.collections.collect(), { removed: 2 });
  for (const host of [a, b]) {
    await host.log.refresh();
    assert.deepEqual(sorted(host.blocks.all), [1]);
  }
  await Promise.all([a.close(), b.close()]);
});

test("only one host collects at a time, and no host is asked when there is nothing to remove", async () => {
  const { log, open } = store();
  const a = await open();
  const b = await open();
  await a.put(3);
  const left = new AbortController();
  const over: string[] = [];
  const second = await a.log.withLock("gc", async () => {
    const waiting = b.collections.collect().finally(() => over.push("waited"));
    const leaving = b.collections.collect({ signal: left.signal });
    await assert.rejects(b.collections.remove([]), { code: "COLLECTING", kind: "unavailable" });
    await severalTurns();
    left.abort(new Error("left"));
    await assert.rejects(leaving, /left/);
    over.push("given back");
    return { waiting };
  });
  assert.deepEqual(await second?.result.waiting, { removed: 1 });
  assert.deepEqual(over, ["given back", "waited"]);
  const { head } = log;
  assert.deepEqual(await a.collections.collect(), { removed: 0 });
  assert.equal(log.head, head);
  await Promise.all([a.close(), b.close()]);
});

test("a collector that is gone removes nothing, and another host ends its collection", async () => {
  const { log, open } = store();
  const a = await open();
  const b = await open();
  await b.put(4);
  const gone = a.log.session;
  const isCondemned = () => log.commits.some(({ entries }) => entries.some(({ kind }) => kind === "condemned"));
  log.onStep = (_step, session) => {
    if (session === gone && isCondemned()) throw new Error("gone");
  };
  await assert.rejects(a.collections.collect(), /gone/);
  // A condemned block is not missing: a reader waits.
  const read = b.blocks.has(4);
  log.endSession(gone);
  assert.equal(await read, true);
  assert.deepEqual(sorted(b.blocks.all), [0, 1, 2, 3, 4]);
  log.onStep = () => {};
  assert.deepEqual(await b.collections.collect(), { removed: 5 });
  await Promise.all([a.close(), b.close()]);
});

test("a host that does not respond delays a collection until its session ends, and then cannot commit", async () => {
  const { log, open } = store();
  const a = await open();
  const b = await open();
  await b.put(3);
  await b.add(1);
  const stalled = b.log.session;
  const go = Promise.withResolvers<void>();
  log.onStep = async (_step, session) => {
    if (session === stalled) await go.promise;
  };
  const late = b.add(3);
  const collected = a.collections.collect();
  const outcome = await Promise.race([collected, severalTurns()]);
  assert.equal(outcome, "turns");
  log.endSession(stalled);
  assert.deepEqual(await collected, { removed: 1 });
  go.resolve();
  await assert.rejects(late, { code: "SESSION_LOST" });
  await eventually("it has joined", () => b.log.session !== stalled);
  await eventually("it can add", () =>
    b.add(3).then(
      () => true,
      () => false,
    ),
  );
  await a.log.refresh();
  assert.deepEqual(sorted(a.blocks.all), [1, 3]);
  await Promise.all([a.close(), b.close()]);
});

test("a collection without the response of a living host is given up, names that host, and removes nothing", async () => {
  const { log, bucket, open } = store();
  const b = await open();
  const a = await Host.open(log, bucket, dag, undefined, 50);
  await b.put(3);
  const go = Promise.withResolvers<void>();
  log.onStep = async (_step, session) => {
    if (session === b.log.session) await go.promise;
  };
  await assert.rejects(a.collections.collect(), {
    code: "COLLECTION_UNANSWERED",
    message: new RegExp(`nothing was removed: .*host of session ${b.log.session}\\b`),
  });
  assert.deepEqual(sorted(a.blocks.all), [3]);
  go.resolve();
  log.onStep = () => {};
  const c = await open();
  assert.deepEqual(await c.collections.collect(), { removed: 1 });
  await Promise.all([a.close(), b.close(), c.close()]);
});

async function severalTurns(): Promise<string> {
  for (let turns = 0; turns < 50; turns += 1) await nextTurn();
  return "turns";
}

/** Whole numbers below a bound. */
function randomOf(seed: number): (bound: number) => number {
  const random = seeded(seed);
  return (bound) => Math.floor(random() * bound);
}

const NODES = 24;
const STEPS = 60;
const { MODHOST_GC_SEEDS: seeds = "25", MODHOST_GC_FIRST: first = "1" } = process.env;

for (let seed = Number(first); seed < Number(first) + Number(seeds); seed += 1) {
  test(`hosts add, pin, collect, stall and die in any order, and no pinned block is lost: ${seed}`, async () => {
    await play(seed);
  });
}

async function play(seed: number): Promise<void> {
  const random = randomOf(seed);
  const nodes: Dag = Array.from({ length: NODES }, (_, at) =>
    Array.from({ length: at === 0 ? 0 : random(4) }, () => random(at)),
  );
  const log = new MemoryLog();
  const bucket = new Bucket();
  log.pageSize = 1 + random(20);
  const dead = new Set<number>();
  const stalled = new Map<number, Promise<void>>();
  const wait = async () => {
    for (let turns = random(3); turns > 0; turns -= 1) await nextTurn();
  };
  log.onStep = async (_step, session) => {
    await wait();
    await stalled.get(session);
    if (dead.has(session)) throw new Error("this host is gone");
  };
  const open = () => Host.open(log, bucket, nodes, wait);
  const hosts = await Promise.all([open(), open(), open()]);
  const under: Promise<unknown>[] = [];
  const acts: ((host: Host, at: number) => unknown)[] = [
    (host) => host.add(random(NODES)),
    (host) => host.addSlowly(random(NODES)),
    (host) => host.put(random(NODES)),
    (host) => host.pin(random(NODES)),
    (host) => host.pin(random(NODES)),
    async (host) => {
      const pins = await host.pins();
      const pin = pins[random(Math.max(1, pins.length))];
      if (pin !== undefined) await host.unpin(pin);
    },
    (host) => host.collections.collect(),
    (host) => host.collections.collect(),
    async (host, at) => {
      if (random(3) > 0) return;
      dead.add(host.log.session);
      const { session } = host.log;
      hosts[at] = await open();
      host.blocks.close();
      // The database notices it later.
      for (let turns = random(200); turns > 0; turns -= 1) await nextTurn();
      log.endSession(session);
      await host.close();
    },
    async (host) => {
      if (random(2) > 0) return;
      const go = Promise.withResolvers<void>();
      const { session } = host.log;
      stalled.set(session, go.promise);
      for (let turns = random(200); turns > 0; turns -= 1) await nextTurn();
      if (random(2) > 0) log.endSession(session);
      for (let turns = random(50); turns > 0; turns -= 1) await nextTurn();
      stalled.delete(session);
      go.resolve();
    },
    () => {
      if (random(3) === 0) log.trim(random(log.head + 1));
    },
  ];
  for (let step = 0; step < STEPS; step += 1) {
    const at = random(hosts.length);
    const act = acts[random(acts.length)] as (host: Host, at: number) => Promise<unknown>;
    const running = (async () => act(hosts[at] as Host, at))();
    running.catch(() => {});
    under.push(running);
    for (let turns = random(30); turns > 0; turns -= 1) await nextTurn();
  }
  await Promise.allSettled(under);
  log.onStep = () => {};
  const fresh = await open();
  const retained = new Set((await fresh.pins()).flatMap((pin) => [...below(nodes, pin)]));
  for (const number of retained) assert.ok(await fresh.blocks.has(number), `${number} is pinned, and missing`);
  await eventually("it collects", () =>
    fresh.collections.collect().then(
      (done) => done !== undefined,
      () => false,
    ),
  );
  await fresh.log.refresh();
  assert.deepEqual(sorted(fresh.blocks.all), sorted(retained));
  await Promise.all([...hosts, fresh].map((host) => host.close()));
}
