import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Module } from "#core/types.ts";
import { hostOf, pluginHost, stateOf } from "./support.ts";

const two = { "one.example": {}, "two.example": {} };

describe("on a server with virtual hosts, a module", () => {
  test("has an instance for each host, with that host's options, hooks and dependencies", async (t) => {
    const running = await hostOf(
      t,
      {
        base: (module) => `base of ${module.host}`,
        greeter(module) {
          module.hook("greet", () => `${module.get_option_string("greeting", "hello")} from ${module.host}`);
          module.hook("where", () => module.host);
          return module;
        },
        needy: (module) => module.depends("base"),
      },
      { config: { hosts: { "one.example": { greeting: "hi" }, "two.example": {} } } },
    );
    const { host } = running;
    assert.deepEqual(
      host.modules().map((state) => `${state.name}@${state.host}`),
      ["base", "greeter", "needy"].flatMap((name) => [`${name}@one.example`, `${name}@two.example`]).sort(byHost),
    );
    assert.equal(host.exports("needy", "two.example"), "base of two.example");
    assert.equal(host.exports<Module>("greeter", "one.example").fire_event("greet"), "hi from one.example");
    assert.equal(host.exports<Module>("greeter", "two.example").fire_event("greet"), "hello from two.example");
    assert.deepEqual(host.exports<Module>("greeter", "two.example").hosts(), ["one.example", "two.example"]);
  });

  test("is loaded on the hosts that enable it, by the server's lists and their own", async (t) => {
    const running = await pluginHost(
      t,
      {
        "mod_all.ts": "export default () => {};",
        "mod_extra.ts": "export default () => {};",
        "mod_everywhere_but_two.ts": "export default () => {};",
        "mod_nowhere.ts": "export default () => {};",
      },
      {
        plugin_autoload: false,
        modules_enabled: ["all", "everywhere_but_two", "nowhere"],
        modules_disabled: ["nowhere"],
        hosts: {
          "one.example": { modules_enabled: ["extra"] },
          "two.example": { modules_disabled: ["everywhere_but_two"] },
        },
      },
    );
    assert.deepEqual(
      running.host.modules().map((state) => `${state.name}@${state.host}`),
      ["all@one.example", "everywhere_but_two@one.example", "extra@one.example", "all@two.example"],
    );
  });

  test("that is global is loaded once and found from every host, and add_host is called for each", async (t) => {
    const seen: string[] = [];
    const running = await hostOf(
      t,
      {
        shared: {
          name: "shared",
          global: true,
          load(module) {
            seen.push(`load ${module.host}`);
            module.add_host = (view, isLast) => {
              seen.push(`host ${view.host} ${view.name}${isLast ? ", the last" : ""}`);
              view.hook("where", () => view.host);
              view.unload = () => void seen.push(`unload ${view.host}`);
            };
            module.unload = () => void seen.push(`unload ${module.host}`);
            return "shared value";
          },
        },
        user: (module) => [module.depends("shared"), module],
      },
      { config: { hosts: two } },
    );
    assert.deepEqual(seen, ["load *", "host one.example shared", "host two.example shared, the last"]);
    const [value, user] = running.host.exports<[string, Module]>("user", "two.example");
    assert.equal(value, "shared value");
    assert.equal(user.fire_event("where"), "two.example");
    assert.deepEqual(stateOf(running, "shared")?.holds, { hook: 2 });
    seen.length = 0;
    await running.host.unload("shared");
    assert.deepEqual(seen, ["unload two.example", "unload one.example", "unload *"]);
    assert.deepEqual(running.host.modules(), []);
  });

  test("may become global while it loads", async (t) => {
    let loads = 0;
    const running = await hostOf(
      t,
      {
        late(module) {
          loads += 1;
          assert.equal(module.host, "one.example");
          module.set_global();
          module.hook("where", () => module.host);
          return module;
        },
        asker: (module) => module.depends("late"),
      },
      { config: { hosts: two } },
    );
    assert.equal(loads, 1);
    assert.equal(stateOf(running, "late")?.status, "loaded");
    assert.equal(running.host.exports<Module>("asker", "two.example").fire_event("where"), "*");
    assert.throws(() => running.host.exports<Module>("late").set_global(), /only while the module loads/);
  });

  test("can be loaded, reloaded and unloaded on a single host", async (t) => {
    let loads = 0;
    const running = await hostOf(t, { a: () => ++loads }, { config: { hosts: two } });
    const { host } = running;
    await host.reload("a", "two.example");
    assert.equal(host.exports("a", "one.example"), 1);
    assert.equal(host.exports("a", "two.example"), 3);
    await host.unload("a", "one.example");
    assert.equal(stateOf(running, "a", "one.example"), undefined);
    assert.equal(stateOf(running, "a", "two.example")?.status, "loaded");
    await host.load("a");
    assert.equal(stateOf(running, "a", "one.example")?.status, "loaded");
  });

  test("that fails on one host still runs on the other", async (t) => {
    const running = await hostOf(
      t,
      {
        picky(module) {
          if (module.host === "one.example") throw new Error("not here");
        },
      },
      { config: { hosts: two } },
    );
    assert.equal(stateOf(running, "picky", "one.example")?.status, "failed");
    assert.equal(stateOf(running, "picky", "two.example")?.status, "loaded");
  });
});

function byHost(a: string, b: string): number {
  return a.slice(a.indexOf("@")) < b.slice(b.indexOf("@"))
    ? -1
    : a.slice(a.indexOf("@")) > b.slice(b.indexOf("@"))
      ? 1
      : 0;
}
