/** The rules of quarantine: when a module is quarantined, and for how long. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "#core/module/instance.ts";
import type { QuarantineNote } from "#core/module/quarantine_list.ts";
import { type QuarantineRules, QuarantineWatch, type QuarantineWatchDeps } from "#core/operations/quarantine_watch.ts";
import { Usage } from "#core/util/usage.ts";

const rules: QuarantineRules = {
  failures: 3,
  failedRequests: 3,
  window: 60,
  pause: 4,
  maxPause: 20,
  loopShare: 0.5,
  hogTime: 0,
  exempt: new Set(["http"]),
};

function setUp(own: Partial<QuarantineRules> = {}, random = 0.5) {
  const instance = { key: "shop@*", name: "shop", host: "*", usage: new Usage("shop") } as Instance;
  const live = [instance];
  const notes: QuarantineNote[] = [];
  const warnings: string[] = [];
  const readmitted: string[] = [];
  let cpu = 0;
  let work: Promise<void> = Promise.resolve();
  const deps: QuarantineWatchDeps = {
    rules: () => ({ ...rules, ...own }),
    modules: {
      live: () => live,
      leavingWith: () => [instance],
      quarantine: async (_instance, note) => {
        notes.push(note);
        return true;
      },
      readmit: async (root) => void readmitted.push(root),
      with: () => (notes.length > 0 ? [instance] : []),
      updateNote: () => undefined,
    },
    change: (_what, operation) => (work = work.then(operation)),
    warn: (_instance, text) => void warnings.push(text),
    announce: () => undefined,
    random: () => random,
    cpu: () => cpu,
  };
  const quarantine = new QuarantineWatch(deps);
  instance.usage.failed = (step, error) => quarantine.failed(instance, step, error);
  return {
    quarantine,
    usage: instance.usage,
    notes,
    warnings,
    readmitted,
    settled: () => work,
    spend: (milliseconds: number) => (cpu += milliseconds),
    instance,
    live,
  };
}

const pauseOf = ({ nextTry = 0, since }: QuarantineNote) => nextTry - since;

describe("the share of the event loop", () => {
  for (const [what, blocked, cpu, isOut] of [
    ["above the limit quarantines a module", 6000, 7000, true],
    ["below the limit does not quarantine a module", 4000, 7000, false],
    ["counts only the CPU time of the thread", 9000, 4000, false],
  ] as const) {
    test(what, async () => {
      const { quarantine, usage, notes, settled, spend } = setUp();
      quarantine.look(100_000);
      usage.blocked += blocked;
      spend(cpu);
      quarantine.look(110_000);
      await settled();
      assert.equal(notes.length, isOut ? 1 : 0);
      if (isOut) assert.match(notes[0]?.reason ?? "", /blocked the event loop for 60 % of 10 s/);
      quarantine.stop();
    });
  }

  /**
   * Runs these pieces of work in a row, each followed by a check. Returns the piece after which the
   * module was quarantined, and the warnings before that.
   */
  async function hog(pieces: readonly number[], { idle = 0, own = {} }: { idle?: number; own?: object } = {}) {
    const { quarantine, usage, notes, warnings, settled, spend } = setUp({ hogTime: 3, ...own });
    let now = 100_000;
    quarantine.look(now);
    let out: number | undefined;
    for (const [index, piece] of pieces.entries()) {
      usage.leave(usage.enter(), performance.now() - piece);
      spend(piece);
      now += piece + idle;
      quarantine.look(now);
      await settled();
      if (notes.length > 0) out ??= index;
    }
    quarantine.stop();
    return { out, warnings, reason: notes[0]?.reason };
  }

  test("nearly all of the event loop, repeatedly, quarantines a module within some seconds, after a warning", async () => {
    const { out, warnings, reason } = await hog(
      Array.from({ length: 20 }, () => 300),
      { idle: 5 },
    );
    assert.ok(out !== undefined && out < 10, `${out} pieces of 300 ms`);
    assert.match(
      warnings[0] ?? "",
      /^will be quarantined if this continues: it blocked the event loop for \d+ % of 1\.5 s/,
    );
    assert.match(reason ?? "", /blocked the event loop for \d+ % of 3 s/);
    assert.equal(warnings.length, 2, "and that it is out");
  });

  for (const [what, pieces, idle] of [
    ["one slow request", [2900, 20, 20], 5],
    ["two slow requests", [1400, 1500, 20], 5],
    ["a burst of slow requests that is over soon", [300, 300, 300, 300, 300, 300, 20], 5],
    ["slow requests with equally long pauses", Array.from({ length: 20 }, () => 300), 310],
  ] as const) {
    test(`${what} do not quarantine a module at once`, async () => {
      assert.equal((await hog(pieces, { idle })).out, undefined);
    });
  }

  test("without quarantine_hog_time, only the window of 10 s counts", async () => {
    const { out, warnings } = await hog(
      Array.from({ length: 20 }, () => 300),
      { idle: 5, own: { hogTime: 0 } },
    );
    assert.ok(out === undefined || out >= 16, `${out}`);
    assert.deepEqual(warnings.length, out === undefined ? 0 : 1);
  });

  test("is forgotten after some time", async () => {
    const { quarantine, usage, notes, settled, spend } = setUp();
    for (let second = 0; second < 60; second += 1) {
      quarantine.look(100_000 + second * 1000);
      usage.blocked += 400;
      spend(1000);
    }
    await settled();
    assert.equal(notes.length, 0);
    quarantine.stop();
  });

  test("does not count if the option is 0", async () => {
    const { quarantine, usage, notes, settled, spend } = setUp({ loopShare: 0 });
    quarantine.look(100_000);
    usage.blocked += 10_000;
    spend(10_000);
    quarantine.look(110_000);
    await settled();
    assert.equal(notes.length, 0);
  });
});

describe("the pauses of quarantine", () => {
  const inSeconds = ({ nextTry = 0 }: QuarantineNote) => Math.round(nextTry - Date.now() / 1000);

  test("double each time, up to the maximum", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const { quarantine, live, instance, notes, settled } = setUp();
    for (let time = 0; time < 5; time += 1) {
      live[0] = { ...instance, key: instance.key } as Instance;
      quarantine.quarantine(live[0], "it fails");
      await settled();
      // The module is tried again.
      t.mock.timers.tick(25_000);
      await settled();
    }
    quarantine.stop();
    assert.deepEqual(notes.map(inSeconds), [4, 8, 16, 20, 20]);
  });

  test("start again with the first one if something else has brought the module back", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const { quarantine, live, instance, notes, settled } = setUp();
    for (let time = 0; time < 3; time += 1) {
      live[0] = { ...instance, key: instance.key } as Instance;
      quarantine.quarantine(live[0], "it fails");
      await settled();
    }
    assert.deepEqual(notes.map(inSeconds), [4, 4, 4]);
    quarantine.stop();
  });

  test("continue on one host if an operator has reloaded the module on another", async (t) => {
    for (const [host, tries] of [
      ["b.example", 1],
      ["*", 1],
      ["a.example", 0],
      [undefined, 0],
    ] as const) {
      t.mock.timers.enable({ apis: ["setTimeout"] });
      const { quarantine, live, instance, settled, readmitted } = setUp();
      live[0] = { ...instance, key: "shop@a.example", host: "a.example" } as Instance;
      quarantine.quarantine(live[0], "it fails");
      await settled();
      quarantine.forget("shop", host);
      t.mock.timers.tick(25_000);
      await settled();
      assert.deepEqual(readmitted, tries === 1 ? ["shop@a.example"] : [], `reloaded on ${host ?? "all hosts"}`);
      quarantine.stop();
      t.mock.timers.reset();
    }
  });

  test("vary by a fifth, and never exceed the maximum", async () => {
    for (const [random, expected] of [
      [0, 3.2],
      [0.5, 4],
      [1, 4.8],
    ] as const) {
      const { quarantine, instance, notes, settled } = setUp({}, random);
      quarantine.quarantine(instance, "it fails");
      await settled();
      quarantine.stop();
      assert.ok(Math.abs(pauseOf(notes[0] as QuarantineNote) - expected) < 0.5);
    }
    const { quarantine, instance, notes, settled } = setUp({ pause: 100 }, 1);
    quarantine.quarantine(instance, "it fails");
    await settled();
    quarantine.stop();
    assert.ok(pauseOf(notes[0] as QuarantineNote) < 20.5);
  });
});

describe("failures", () => {
  test("are forgotten after some time", async () => {
    const { quarantine, usage, notes, settled } = setUp({ window: 1 });
    const now = performance.now();
    usage.fault("running a timer", new Error("one"));
    usage.fault("running a timer", new Error("two"));
    quarantine.look(now - 900);
    usage.fault("running a timer", new Error("three"));
    await settled();
    assert.equal(notes.length, 1);
    quarantine.stop();
    const later = setUp({ window: 1 });
    later.usage.fault("running a timer", new Error("one"));
    later.usage.fault("running a timer", new Error("two"));
    later.quarantine.look(performance.now() - 1100);
    later.quarantine.look(performance.now() - 1050);
    later.usage.fault("running a timer", new Error("three"));
    await later.settled();
    assert.equal(later.notes.length, 0);
    later.quarantine.stop();
  });

  test("do not count if they happened before quarantine was turned on", async () => {
    const own = { failures: 0, window: 0.1 };
    const { quarantine, usage, notes, settled } = setUp(own);
    quarantine.start();
    usage.fault("running a timer", new Error("one"));
    usage.fault("running a timer", new Error("two"));
    await sleep(300);
    own.failures = 3;
    usage.fault("running a timer", new Error("three"));
    await settled();
    quarantine.stop();
    assert.equal(notes.length, 0);
  });
});
