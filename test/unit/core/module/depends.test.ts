import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Module } from "#core/types.ts";
import { hostOf, logged, pluginHost, stateOf } from "./support.ts";

describe("module.depends", () => {
  test("loads a module that is not loaded, enabled or not, and returns what its function returned", async (t) => {
    const running = await pluginHost(
      t,
      {
        "mod_a.ts": "export default (module) => 'a of ' + module.depends('b');",
        "mod_b.ts": "export default async (module) => 'b of ' + module.depends('mod_c');",
        "mod_c.ts": "export default () => 'c';",
      },
      { plugin_autoload: false, modules_enabled: ["a"] },
    );
    assert.equal(running.host.exports("a"), "a of b of c");
    assert.deepEqual(stateOf(running, "a")?.depends, ["b"]);
    assert.deepEqual(
      running.host.modules().map(({ name }) => name),
      ["c", "b", "a"],
    );
  });

  test("undoes the attempt that needed it: nothing of it was active, and its resources are released", async (t) => {
    const seen: string[] = [];
    let attempts = 0;
    const running = await hostOf(t, {
      needy(module) {
        attempts += 1;
        module.hook("server-started", () => seen.push(`started ${attempts}`));
        module.add_item("thing", { attempt: attempts });
        module.on_release("handle", () => seen.push("released"));
        module.depends("later");
      },
      watcher(module) {
        module.handle_items(
          "thing",
          (owned) => void seen.push(`thing ${(owned.item as { attempt: number }).attempt}`),
          () => {},
        );
      },
      later: () => {},
    });
    assert.equal(attempts, 2);
    assert.deepEqual(seen, ["released", "thing 2", "started 2"]);
    assert.deepEqual(stateOf(running, "needy")?.holds, { hook: 1, item: 1, release: 1 });
  });

  test("undoes the attempt even if the module catches the error", async (t) => {
    let attempts = 0;
    const running = await hostOf(t, {
      catcher(module) {
        attempts += 1;
        module.hook("x", () => "answer");
        try {
          return module.depends("later");
        } catch {
          return "caught";
        }
      },
      later: () => "value",
    });
    assert.equal(attempts, 2);
    assert.equal(running.host.exports("catcher"), "value");
  });

  test("works after an await and in module.load", async (t) => {
    const running = await hostOf(t, {
      async waits(module) {
        await Promise.resolve();
        module.load = () => module.depends("later");
        return module.depends("other");
      },
      later: () => {},
      other: () => 7,
    });
    assert.equal(running.host.exports("waits"), 7);
    assert.deepEqual(stateOf(running, "waits")?.depends, ["other", "later"]);
  });

  test("returns loaded modules after the load, and cannot load others", async (t) => {
    let stored: Module | undefined;
    const running = await hostOf(t, {
      keeper: (module) => {
        stored = module;
      },
      there: () => 1,
    });
    assert.equal(stored?.depends("there"), 1);
    assert.throws(() => stored?.depends("elsewhere"), { code: "MODULE_DEPENDENCY", message: /needs elsewhere/ });
    assert.equal(stateOf(running, "elsewhere"), undefined);
  });

  test("needs no second attempt if the file exports depends", async (t) => {
    let attempts = 0;
    const running = await hostOf(t, {
      early: {
        name: "early",
        depends: ["late"],
        load: (module) => {
          attempts += 1;
          return module.depends("late");
        },
      },
      late: () => "late",
    });
    assert.equal(attempts, 1);
    assert.equal(running.host.exports("early"), "late");
  });
});

describe("a missing dependency fails the module, with the reason,", () => {
  test("if the dependency itself fails: it runs once, however many modules need it", async (t) => {
    let runs = 0;
    const running = await hostOf(t, {
      one: (module) => module.depends("broken"),
      two: { name: "two", depends: ["broken"], load: () => {} },
      broken: () => {
        runs += 1;
        throw new Error("out of order");
      },
    });
    assert.equal(runs, 1);
    for (const name of ["one", "two"]) {
      const state = stateOf(running, name);
      assert.equal(state?.status, "failed");
      assert.match(
        state?.note ?? "",
        new RegExp(`The module ${name} needs broken, which is not loaded: .*out of order`),
      );
    }
    assert.equal(logged(running, "error").length, 3);
  });

  test("if it does not exist or is disabled", async (t) => {
    const running = await hostOf(
      t,
      { one: (module) => module.depends("nowhere"), two: (module) => module.depends("off"), off: () => {} },
      { config: { modules_disabled: ["mod_off"] } },
    );
    assert.match(stateOf(running, "one")?.note ?? "", /needs nowhere.*No module nowhere in/);
    assert.match(stateOf(running, "two")?.note ?? "", /needs off.*modules_disabled/);
    assert.equal(stateOf(running, "off"), undefined);
  });

  test("if modules depend on each other in a cycle, which is named", async (t) => {
    const running = await hostOf(t, {
      a: (module) => module.depends("b"),
      b: { name: "b", depends: ["c"], load: () => {} },
      c: (module) => module.depends("a"),
      self: (module) => module.depends("self"),
      free: () => {},
    });
    for (const name of ["a", "b", "c"]) assert.match(stateOf(running, name)?.note ?? "", /cycle: a -> b -> c -> a/);
    assert.match(stateOf(running, "self")?.note ?? "", /cycle: self -> self/);
    assert.equal(stateOf(running, "free")?.status, "loaded");
  });
});
