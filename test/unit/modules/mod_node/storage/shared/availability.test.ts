/** What is observed of stores that go and come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Availability } from "#node/storage/shared/availability.ts";
import { failure } from "#node/util/errors.ts";
import { eventually } from "#test/support/eventually.ts";

test("a store that goes while nobody calls is noticed, and so is its return", async (t) => {
  const told: (string | undefined)[] = [];
  const availability = new Availability((problem) => told.push(problem), { probeMs: 1, idleMs: 1 });
  // Timers of what is watched keep no process.
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
  assert.equal(told.length, 2);
  assert.match(String(told[0]), /it was switched off/);
  assert.equal(told[1], undefined);
});

test("calls tell by their outcome, and other failures say nothing of the store", async (t) => {
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

test("a store that fails because of another one inside is not said to be away", async (t) => {
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
  const asked: string[] = [];
  const outer = availability.watch(
    {
      async locked(run: () => Promise<void>) {
        asked.push("locked");
        await run().catch((error: Error) => {
          throw failure("STORE_UNAVAILABLE", { reason: `the lock: ${error.message}` }, error);
        });
      },
      async probe() {
        asked.push("probe");
      },
    },
    { probe: (target) => target.probe(), refused: ["locked"] },
  );
  for (let times = 0; times < 2; times += 1)
    await assert.rejects(
      outer.locked(() => inner.read()),
      /the objects/,
    );
  // It was not asked first whether it is back.
  assert.deepEqual(asked, ["locked", "locked"]);
  assert.match(String(availability.problem), /^[^;]*the objects are away[^;]*; [^;]*$/);
  assert.doesNotMatch(String(availability.problem), /the lock/);
});

/** A store that is away while `answers` is false, or says nothing until `hang` resolves. */
class Place {
  answers = true;
  hang: Promise<void> | undefined;
  readonly asked = { probe: 0, write: 0 };

  async probe(): Promise<void> {
    this.asked.probe += 1;
    await this.hang;
    if (!this.answers) throw failure("STORE_UNAVAILABLE", { reason: "it is gone" });
  }

  async write(): Promise<string> {
    this.asked.write += 1;
    if (this.answers) return "written";
    throw failure(
      "STORE_UNAVAILABLE",
      { reason: "the answer was lost" },
      failure("STORE_UNAVAILABLE", { reason: "gone" }),
    );
  }

  async stream(): Promise<{ body: AsyncIterable<number> } | undefined> {
    if (!this.answers) return undefined;
    const fail = async function* () {
      yield 1;
      throw failure("STORE_UNAVAILABLE", { reason: "it comes too slowly" });
    };
    return { body: fail() };
  }
}

function watchedPlace(t: { after(run: () => void): void }, tryMs: number) {
  const place = new Place();
  // It does not ask by itself.
  const availability = new Availability(() => {}, { probeMs: 1e9, idleMs: 1e9, tryMs });
  t.after(() => availability.close());
  const watched = availability.watch(place, {
    probe: (target) => target.probe(),
    refused: ["write"],
    streams: ["stream"],
  });
  return { place, availability, watched };
}

test("a store that is known to be away is not asked again and again by those who would have to wait for it", async (t) => {
  const { place, availability, watched } = watchedPlace(t, 600_000);
  place.answers = false;
  await assert.rejects(watched.write(), /the answer was lost/);
  assert.match(String(availability.problem), /be reached: gone;/);
  const calls = Array.from({ length: 10 }, () => watched.write());
  for (const { status, reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[])
    assert.deepEqual([status, reason.code, /it is gone/.test(reason.message)], ["rejected", "STORE_UNAVAILABLE", true]);
  assert.deepEqual(place.asked, { probe: 1, write: 1 });
  // Nobody waits until it is asked next.
  place.answers = true;
  assert.equal(await watched.write(), "written");
  assert.equal(availability.problem, undefined);
  assert.equal(await watched.write(), "written");
  assert.deepEqual(place.asked, { probe: 2, write: 3 });
});

test("a store that stands still refuses those who come, and one probe waits for it", async (t) => {
  const { place, availability, watched } = watchedPlace(t, 1);
  place.answers = false;
  await assert.rejects(watched.write());
  const thaw = Promise.withResolvers<void>();
  place.hang = thaw.promise;
  for (let call = 0; call < 3; call += 1) await assert.rejects(watched.write(), { code: "STORE_UNAVAILABLE" });
  assert.deepEqual(place.asked, { probe: 1, write: 1 });
  place.answers = true;
  thaw.resolve();
  await eventually("its return is noticed", () => availability.problem === undefined);
});

test("an answer that fails on its way is heard of, and the next success tells otherwise", async (t) => {
  const { place, availability, watched } = watchedPlace(t, 600_000);
  const { body } = (await watched.stream()) ?? assert.fail();
  const got: number[] = [];
  await assert.rejects(
    (async () => {
      for await (const piece of body) got.push(piece);
    })(),
    /too slowly/,
  );
  assert.deepEqual(got, [1]);
  await eventually("it is heard of", () => /too slowly/.test(String(availability.problem)));
  await watched.probe();
  assert.equal(availability.problem, undefined);
  place.answers = false;
  assert.equal(await watched.stream(), undefined);
});

test("a store that refuses writes and can be read is told of until it takes them again, which is tried", async (t) => {
  const told: (string | undefined)[] = [];
  const availability = new Availability((problem) => told.push(problem), { probeMs: 1e9, idleMs: 1 });
  const waiting = setInterval(() => {}, 1000);
  t.after(() => clearInterval(waiting));
  t.after(() => availability.close());
  let refuses = true;
  let tried = 0;
  const store = {
    async read() {},
    async write() {
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
  });
  await assert.rejects(watched.write(), { code: "STORE_READ_ONLY" });
  // Reads succeed, and say nothing of writes.
  await watched.read();
  const before = tried;
  await eventually("it is tried", () => tried > before + 2);
  await watched.read();
  assert.match(String(availability.problems.store), /takes no writes.*no right/);
  refuses = false;
  await eventually("writes are taken again", () => availability.problem === undefined);
  assert.deepEqual([told.length, told[1]], [2, undefined]);
});
