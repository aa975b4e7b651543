import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import type { Module } from "#core/types.ts";

async function movable(t: TestContext, load: (module: Module) => void) {
  const host = await createTestHost({ clock: "manual", modules: [{ name: "ticker", load }] });
  t.after(() => host.stop());
  return host;
}

describe("a clock that the test moves", () => {
  test("sets module.now, so that a test can let things expire", async (t) => {
    const host = await movable(t, (module) => {
      const expires = module.now() + 60;
      module.depends("http");
      module.provides("http", { route: { "GET /": () => (module.now() < expires ? "fresh" : 410) } });
    });
    await host.clock.advance(59.9);
    assert.equal((await host.inject("/ticker/")).body, "fresh");
    await host.clock.advance(0.1);
    assert.equal((await host.inject("/ticker/")).status, 410);
  });

  test("fires each timer at its own moment, in order, including those set meanwhile, and awaits them", async (t) => {
    const seen: string[] = [];
    let begin = 0;
    const host = await movable(t, (module) => {
      const note = (name: string) => (now: number) => void seen.push(`${name} ${(now - begin).toFixed(3)}`);
      module.add_timer(30, note("thirty"));
      module.add_timer(10, async (now) => {
        await new Promise(setImmediate);
        note("ten")(now);
        module.add_timer(5, note("from ten"));
        return 10;
      });
      module.add_timer(30, note("thirty too"));
    });
    begin = host.clock.now();
    await host.clock.advance(9.999);
    assert.deepEqual(seen, []);
    await host.clock.advance(20.001);
    assert.deepEqual(seen, [
      "ten 10.000",
      "from ten 15.000",
      "ten 20.000",
      "from ten 25.000",
      "thirty 30.000",
      "thirty too 30.000",
      "ten 30.000",
    ]);
    assert.equal((host.clock.now() - begin).toFixed(3), "30.000");
  });

  test("adds up fractions of seconds, and supports delays of any length", async (t) => {
    let tenths = 0;
    let years = 0;
    const host = await movable(t, (module) => {
      module.add_timer(0.1, () => {
        tenths += 1;
        return tenths < 10 ? 0.1 : undefined;
      });
      module.add_timer(365 * 86_400, () => void years++);
    });
    await host.clock.advance(1);
    assert.equal(tenths, 10);
    await host.clock.advance(365 * 86_400 - 1);
    assert.equal(years, 1);
  });

  test("respects stop, reschedule and unload", async (t) => {
    const seen: string[] = [];
    const host = await movable(t, (module) => {
      module.add_timer(1, () => void seen.push("stopped")).stop();
      const later = module.add_timer(1, () => void seen.push("later"));
      module.add_timer(0, () => later.reschedule(5));
      module.add_timer(100, () => void seen.push("unloaded"));
    });
    await host.clock.advance(0);
    await host.clock.advance(4.9);
    assert.deepEqual(seen, []);
    await host.clock.advance(0.1);
    assert.deepEqual(seen, ["later"]);
    await host.unload("ticker");
    await host.clock.advance(1000);
    assert.deepEqual(seen, ["later"]);
  });

  test("continues after a timer that fails, whose error is logged", async (t) => {
    let calls = 0;
    const host = await movable(t, (module) => {
      module.add_timer(1, () => {
        throw new Error("bad timer");
      });
      module.add_timer(2, () => void calls++);
    });
    await host.clock.advance(2);
    assert.equal(calls, 1);
    assert.match(host.logged("error")[0]?.msg ?? "", /bad timer/);
  });

  test("throws if a timer reschedules itself for ever, or if it is moved twice at once or backwards", async (t) => {
    const host = await movable(t, (module) => void module.add_timer(5, () => 0));
    await assert.rejects(host.clock.advance(-1), /seconds from 0/);
    const first = host.clock.advance(5);
    await assert.rejects(host.clock.advance(1), /already advancing/);
    await assert.rejects(first, /always returns 0/);
  });
});

test("without it, timers use the real time, and the clock cannot be moved", async (t) => {
  const fired = Promise.withResolvers<number>();
  const load = (module: Module) => void module.add_timer(0.001, (now) => fired.resolve(now));
  const host = await createTestHost({ modules: [{ name: "ticker", load }] });
  t.after(() => host.stop());
  assert.ok(Math.abs((await fired.promise) - host.clock.now()) < 60);
  await assert.rejects(host.clock.advance(1), /clock: "manual"/);
});
