import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assertNothingLeft } from "#core/testing/index.ts";
import type { Module } from "#core/types.ts";
import { hostOf, logged, stateOf } from "./support.ts";

describe("loading a module", () => {
  test("runs the function and module.load, then activates everything at once, then calls ready and announces the events", async (t) => {
    const seen: unknown[] = [];
    await hostOf(t, {
      watcher(module) {
        module.hook("module-loaded", ({ module: name }: { module: string }) => void seen.push(`event ${name}`));
        module.hook("server-started", () => void seen.push("server-started"));
      },
      async main(module) {
        seen.push(["function", module.reloading]);
        module.hook("ping", () => "pong");
        module.load = async () => {
          await Promise.resolve();
          seen.push(["load", module.reloading, module.has_hooks("ping")]);
        };
        module.ready = () => void seen.push(["ready", module.reloading, module.fire_event("ping")]);
      },
    });
    assert.deepEqual(seen, [
      "event watcher",
      ["function", false],
      ["load", false, false],
      "event main",
      ["ready", undefined, "pong"],
      "server-started",
    ]);
  });

  for (const [where, step] of [
    ["the function", "running its default function"],
    ["module.load", "running module.load"],
  ] as const) {
    test(`that fails while ${where} leaves nothing active`, async (t) => {
      const released: string[] = [];
      let stored: Module | undefined;
      const running = await hostOf(t, {
        failing(module) {
          stored = module;
          module.hook("ping", () => "pong");
          module.add_item("thing", {});
          module.add_timer(0, () => void released.push("timer ran"));
          module.on_release("file", () => released.push("file closed"));
          module.unload = () => released.push("unload ran");
          const fail = () => {
            throw new Error("cannot");
          };
          if (where === "module.load") module.load = fail;
          else fail();
        },
      });
      const state = stateOf(running, "failing");
      assert.equal(state?.status, "failed");
      assert.match(state?.note ?? "", new RegExp(`failed while ${step}: cannot`));
      assert.deepEqual(state?.holds, {});
      assert.equal(running.host.fire("ping"), undefined);
      assert.deepEqual(released, ["file closed"]);
      assert.throws(() => stored?.hook("ping", () => {}), { code: "MODULE_UNLOADED" });
    });
  }

  test("fails if a receiver refuses what the module provides, and removes all of it", async (t) => {
    const running = await hostOf(t, {
      receiver(module) {
        module.handle_items(
          "thing",
          ({ item }) => {
            if ("bad" in (item as object)) throw new Error("a bad thing");
          },
          () => {},
        );
      },
      provider(module) {
        module.hook("ping", () => "pong");
        module.add_item("thing", { bad: true });
      },
    });
    assert.match(stateOf(running, "provider")?.note ?? "", /failed while adding what it provides: a bad thing/);
    assert.equal(running.host.fire("ping"), undefined);
  });

  test("with an error in module.ready logs and notes the error, and the module stays", async (t) => {
    const running = await hostOf(t, {
      hasty(module) {
        module.ready = () => Promise.reject(new Error("not ready"));
      },
    });
    assert.equal(stateOf(running, "hasty")?.status, "loaded");
    assert.match(stateOf(running, "hasty")?.note ?? "", /module\.ready: not ready/);
    assert.equal(logged(running, "error").length, 1);
  });

  test("calls its function with the module alone, so that further parameters have their defaults", async (t) => {
    const given: unknown[] = [];
    const load = (...values: unknown[]) => void given.push(values.length);
    await hostOf(t, { plain: { name: "plain", load } });
    assert.deepEqual(given, [1]);
  });

  test("into a running server calls ready at once", async (t) => {
    const seen: string[] = [];
    const running = await hostOf(t, {
      late(module) {
        module.ready = () => void seen.push("ready");
      },
    });
    await running.host.unload("late");
    await running.host.load("late");
    assert.deepEqual(seen, ["ready", "ready"]);
  });
});

test("that fails after it has loaded other modules leaves these loaded and ready", async (t) => {
  const seen: string[] = [];
  const running = await hostOf(t, {
    helper(module) {
      module.ready = () => void seen.push("ready");
    },
    failing(module) {
      module.depends("helper");
      throw new Error("cannot");
    },
  });
  await running.host.unload("helper");
  await assert.rejects(running.host.load("failing"), /cannot/);
  assert.equal(stateOf(running, "helper")?.status, "loaded");
  assert.deepEqual(seen, ["ready", "ready"]);
});

describe("unloading a module", () => {
  test("removes hooks, items and timers first, waits for open requests, calls unload, and then releases the rest, last first", async (t) => {
    const seen: string[] = [];
    const gate = Promise.withResolvers<void>();
    const running = await hostOf(t, {
      receiver(module) {
        module.handle_items(
          "thing",
          () => {},
          () => {
            seen.push("item removed");
            return gate.promise.then(() => void seen.push("drained"));
          },
        );
      },
      leaver(module) {
        module.on_release("first", () => seen.push("first released"));
        module.hook("ping", () => "pong");
        module.add_item("thing", {});
        module.add_timer(1000, () => {});
        module.on_release("second", () => seen.push("second released"));
        module.unload = () => void seen.push(`unload with ${JSON.stringify(stateOf(running, "leaver")?.holds)}`);
      },
    });
    const leaving = running.host.unload("leaver");
    while (seen.length === 0) await new Promise(setImmediate);
    assert.equal(running.host.fire("ping"), undefined);
    assert.equal(stateOf(running, "leaver")?.status, "unloading");
    gate.resolve();
    await leaving;
    assert.deepEqual(seen, [
      "item removed",
      "drained",
      'unload with {"release":2}',
      "second released",
      "first released",
    ]);
    await assertNothingLeft(running.host, "leaver");
  });

  test("waits no longer than unload_grace", { timeout: 8000 }, async (t) => {
    const running = await hostOf(
      t,
      {
        receiver(module) {
          module.handle_items(
            "thing",
            () => {},
            () => new Promise(() => {}),
          );
        },
        leaver: (module) => module.add_item("thing", {}),
      },
      { config: { unload_grace: 0.05 } },
    );
    await running.host.unload("leaver");
    await assertNothingLeft(running.host, "leaver");
  });

  test("logs an error of one step under the module, and continues with the others", async (t) => {
    const seen: string[] = [];
    const running = await hostOf(t, {
      clumsy(module) {
        module.on_release("last", () => seen.push("last"));
        module.on_release("bad", () => {
          throw new Error("bad release");
        });
        module.unload = () => Promise.reject(new Error("bad unload"));
      },
    });
    await running.host.unload("clumsy");
    assert.deepEqual(seen, ["last"]);
    const errors = logged(running, "error");
    assert.match(errors[0]?.msg ?? "", /module\.unload: bad unload/);
    assert.match(errors[1]?.msg ?? "", /undoing bad: bad release/);
    assert.equal(errors[0]?.module, "clumsy");
  });

  test("unloads its dependants first, and announces each", async (t) => {
    const seen: string[] = [];
    const leaving = (module: Module) => {
      module.unload = () => void seen.push(module.name);
    };
    const running = await hostOf(t, {
      base: leaving,
      middle(module) {
        leaving(module);
        module.depends("base");
      },
      top(module) {
        leaving(module);
        module.depends("middle");
      },
      other(module) {
        module.hook("module-unloaded", ({ module: name }: { module: string }) => void seen.push(`event ${name}`));
      },
    });
    await running.host.unload("base");
    assert.deepEqual(seen, ["top", "middle", "base", "event top", "event middle", "event base"]);
    assert.deepEqual(
      running.host.modules().map(({ name }) => name),
      ["other"],
    );
  });

  test("leaves its module object unable to add anything, though it can still read", async (t) => {
    let gone: Module | undefined;
    const running = await hostOf(t, {
      gone(module) {
        gone = module;
        module.shared("table").x = 1;
      },
    });
    await running.host.unload("gone");
    const module = gone as Module;
    const calls: (() => unknown)[] = [
      () => module.hook("x", () => {}),
      () => module.provides("thing", {}),
      () => module.add_item("thing", {}),
      () =>
        module.handle_items(
          "thing",
          () => {},
          () => {},
        ),
      () => module.add_timer(1, () => {}),
      () => module.on_release("x", () => {}),
      () => module.shared("table"),
      () => module.depends("gone"),
      () => module.set_status("info", "x"),
    ];
    for (const call of calls) assert.throws(call, { code: "MODULE_UNLOADED" }, String(call));
    module.log.info("still here");
    assert.equal(module.fire_event("x"), undefined);
    assert.equal(module.get_option("data_path"), running.folder);
  });

  test("stops timers, and the failure of a timer is logged under its module", async (t) => {
    const fired = Promise.withResolvers<void>();
    let calls = 0;
    const running = await hostOf(t, {
      ticker(module) {
        module.add_timer(
          0,
          (now, text) => {
            assert.ok(Math.abs(now - Date.now() / 1000) < 60);
            assert.equal(text, "extra");
            calls += 1;
            fired.resolve();
            return 1000;
          },
          "extra",
        );
        module.add_timer(0, () => {
          throw new Error("bad timer");
        });
      },
    });
    await fired.promise;
    while (logged(running, "error").length === 0) await new Promise(setImmediate);
    assert.match(logged(running, "error")[0]?.msg ?? "", /running a timer: bad timer/);
    assert.deepEqual(stateOf(running, "ticker")?.holds, { timer: 1 });
    await running.host.unload("ticker");
    assert.equal(calls, 1);
    await assertNothingLeft(running.host, "ticker");
  });
});

test("operations on modules that do not exist, or that are loaded already, are refused with a code", async (t) => {
  const running = await hostOf(t, { here: () => {} });
  const { host } = running;
  await assert.rejects(host.load("here"), { code: "MODULE_ALREADY_LOADED" });
  await assert.rejects(host.unload("gone"), { code: "MODULE_NOT_LOADED" });
  await assert.rejects(host.reload("gone"), { code: "MODULE_NOT_LOADED" });
  await assert.rejects(host.load("here", "nowhere.example"), { code: "UNKNOWN_HOST" });
  assert.throws(() => host.exports("gone"), { code: "MODULE_NOT_LOADED" });
});
