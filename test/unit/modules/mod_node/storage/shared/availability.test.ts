/** Observing stores that become unreachable and come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Availability } from "#node/storage/shared/availability.ts";
import { failure } from "#node/util/errors.ts";
import { eventually } from "#test/support/eventually.ts";

test("a store that becomes unreachable without calls is noticed, and so is its return", async (t) => {
  const changes: (string | undefined)[] = [];
  const availability = new Availability((problem) => changes.push(problem), { probeMs: 1, idleMs: 1 });
  // Timers of watched stores do not keep the process alive.
  const waiting = setInterval(() => {}, 1000);
  t.after(() => clearInterval(waiting));
  t.after(() => availability.close());
  let isAway = false;
  const store = {
    async ask() {
      if (isAway) throw failure("STORE_UNAVAILABLE", { reason: "it was switched off" });
    },
  };
  availability.watch(store, { probe: (target) => target.ask(), refused: [] });
  isAway = true;
  await eventually("it is noticed", () => availability.problem !== undefined);
  assert.match(String(availability.problem), /it was switched off/);
  isAway = false;
  await eventually("its return is noticed", () => availability.problem === undefined);
  assert.equal(changes.length, 2);
  assert.match(String(changes[0]), /it was switched off/);
  assert.equal(changes[1], undefined);
});

test("calls report by their outcome, and other failures do not concern the store", async (t) => {
  const availability = new Availability(() => {});
  t.after(() => availability.close());
  let fault: Error | undefined = failure("STORE_UNAVAILABLE", { reason: "gone" });
  const store = {
    async ask() {
      if (fault !== undefined) throw fault;
    },
  };
  const watched = availability.watch(store, { probe: (target) => target.ask(), refused: [] });
  await assert.rejects(watched.ask());
  assert.match(String(availability.problem), /gone/);
  fault = new Error("a wrong question");
  await assert.rejects(watched.ask());
  assert.match(String(availability.problem), /gone/);
  fault = undefined;
  await watched.ask();
  assert.equal(availability.problem, undefined);
});

test("a store that fails because of an inner store is not reported", async (t) => {
  const availability = new Availability(() => {});
  t.after(() => availability.close());
  const inner = availability.watch(
    {
      async read() {
        throw failure("STORE_UNAVAILABLE", { reason: "the objects are away" });
      },
    },
    { probe: (target) => target.read(), refused: [] },
  );
  const callCounts: string[] = [];
  const outer = availability.watch(
    {
      async locked(run: () => Promise<void>) {
        callCounts.push("locked");
        await run().catch((error: Error) => {
          throw failure("STORE_UNAVAILABLE", { reason: `the lock: ${error.message}` }, error);
        });
      },
      async probe() {
        callCounts.push("probe");
      },
    },
    { probe: (target) => target.probe(), refused: ["locked"] },
  );
  for (let times = 0; times < 2; times += 1)
    await assert.rejects(
      outer.locked(() => inner.read()),
      /the objects/,
    );
  // The call did not first ask whether the store is back.
  assert.deepEqual(callCounts, ["locked", "locked"]);
  assert.match(String(availability.problem), /^[^;]*the objects are away[^;]*; [^;]*$/);
  assert.doesNotMatch(String(availability.problem), /the lock/);
});

/** A store that is unreachable while `isUp` is false, or stalls until `hang` resolves. */
class FakeStore {
  isUp = true;
  hang: Promise<void> | undefined;
  readonly callCounts = { probe: 0, write: 0 };

  async probe(): Promise<void> {
    this.callCounts.probe += 1;
    await this.hang;
    if (!this.isUp) throw failure("STORE_UNAVAILABLE", { reason: "it is gone" });
  }

  async write(): Promise<string> {
    this.callCounts.write += 1;
    if (this.isUp) return "written";
    throw failure(
      "STORE_UNAVAILABLE",
      { reason: "the response was lost" },
      failure("STORE_UNAVAILABLE", { reason: "gone" }),
    );
  }

  async stream(): Promise<{ body: AsyncIterable<number> } | undefined> {
    if (!this.isUp) return undefined;
    const fail = async function* () {
      yield 1;
      throw failure("STORE_UNAVAILABLE", { reason: "it comes too slowly" });
    };
    return { body: fail() };
  }
}

function watchedStore(t: { after(run: () => void): void }, tryMs: number) {
  const fake = new FakeStore();
  // The store sends no probes of its own.
  const availability = new Availability(() => {}, { probeMs: 1e9, idleMs: 1e9, tryMs });
  t.after(() => availability.close());
  const watched = availability.watch(fake, {
    probe: (target) => target.probe(),
    refused: ["write"],
    streams: ["stream"],
  });
  return { fake: fake, availability, watched };
}

test("a store that is known to be unreachable is not called repeatedly by callers that would have to wait", async (t) => {
  const { fake, availability, watched } = watchedStore(t, 600_000);
  fake.isUp = false;
  await assert.rejects(watched.write(), /the response was lost/);
  assert.match(String(availability.problem), /be reached: gone;/);
  const calls = Array.from({ length: 10 }, () => watched.write());
  for (const { status, reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[])
    assert.deepEqual([status, reason.code, /it is gone/.test(reason.message)], ["rejected", "STORE_UNAVAILABLE", true]);
  assert.deepEqual(fake.callCounts, { probe: 1, write: 1 });
  // No caller waits until the next probe.
  fake.isUp = true;
  assert.equal(await watched.write(), "written");
  assert.equal(availability.problem, undefined);
  assert.equal(await watched.write(), "written");
  assert.deepEqual(fake.callCounts, { probe: 2, write: 3 });
});

test("a stalled store refuses new calls, and a single probe waits for it", async (t) => {
  const { fake, availability, watched } = watchedStore(t, 1);
  fake.isUp = false;
  await assert.rejects(watched.write());
  const thaw = Promise.withResolvers<void>();
  fake.hang = thaw.promise;
  for (let call = 0; call < 3; call += 1) await assert.rejects(watched.write(), { code: "STORE_UNAVAILABLE" });
  assert.deepEqual(fake.callCounts, { probe: 1, write: 1 });
  fake.isUp = true;
  thaw.resolve();
  await eventually("its return is noticed", () => availability.problem === undefined);
});

test("a response that fails midway is noticed, and the next success clears the problem", async (t) => {
  const { fake, availability, watched } = watchedStore(t, 600_000);
  const { body } = (await watched.stream()) ?? assert.fail();
  const got: number[] = [];
  await assert.rejects(
    (async () => {
      for await (const piece of body) got.push(piece);
    })(),
    /too slowly/,
  );
  assert.deepEqual(got, [1]);
  await eventually("the failure is noticed", () => /too slowly/.test(String(availability.problem)));
  await watched.probe();
  assert.equal(availability.problem, undefined);
  fake.isUp = false;
  assert.equal(await watched.stream(), undefined);
});

test("a store that is readable and refuses writes is reported until a test write succeeds", async (t) => {
  const changes: (string | undefined)[] = [];
  const availability = new Availability((problem) => changes.push(problem), { probeMs: 1e9, idleMs: 1 });
  const waiting = setInterval(() => {}, 1000);
  t.after(() => clearInterval(waiting));
  t.after(() => availability.close());
  let refuses = true;
  let tried = 0;
  let written = 0;
  const store = {
    async read() {},
    async write() {
      written += 1;
      if (refuses) throw failure("STORE_READ_ONLY", { reason: "no right" });
    },
  };
  const watched = availability.watch(store, {
    name: "store",
    probe: (target) => target.read(),
    tryWriting: (target) => {
      tried += 1;
      return target.write();
    },
    refused: ["read", "write"],
    writes: ["write"],
  });
  await assert.rejects(watched.write(), { code: "STORE_READ_ONLY" });
  // From now on, calls that write fail without a request, until the test write succeeds.
  const calls = written;
  await assert.rejects(watched.write(), { code: "STORE_READ_ONLY" });
  assert.equal(written - tried, calls);
  // Reads succeed and do not say whether writes do.
  await watched.read();
  const before = tried;
  await eventually("a write is tried", () => tried > before + 2);
  await watched.read();
  assert.match(String(availability.problems.store), /takes no writes.*no right/);
  refuses = false;
  await eventually("writes are accepted again", () => availability.problem === undefined);
  assert.deepEqual([changes.length, changes[1]], [2, undefined]);
});
