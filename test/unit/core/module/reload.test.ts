import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Module } from "#core/types.ts";
import { hostOf, pluginHost, stateOf, write } from "./support.ts";

describe("a reload", () => {
  test("calls save, evaluates the new file, calls load and restore, swaps the instances, and then unloads the old one", async (t) => {
    const seen: string[] = [];
    let generation = 0;
    const running = await hostOf(t, {
      watcher(module) {
        module.hook("module-reloaded", ({ module: name }: { module: string }) => void seen.push(`event ${name}`));
      },
      main(module) {
        const own = ++generation;
        const note = (step: string) => void seen.push(`${step} ${own} ${module.reloading} ${module.fire_event("who")}`);
        note("function");
        module.hook("who", () => own);
        module.load = () => note("load");
        module.save = () => {
          note("save");
          return { from: own };
        };
        module.restore = (saved) => note(`restore ${JSON.stringify(saved)}`);
        module.ready = () => note("ready");
        module.unload = () => note("unload");
      },
    });
    seen.length = 0;
    await running.host.reload("main");
    assert.deepEqual(seen, [
      "save 1 undefined 1",
      "function 2 true 1",
      "load 2 true 1",
      'restore {"from":1} 2 true 1',
      "unload 1 undefined 2",
      "event main",
      "ready 2 undefined 2",
    ]);
    assert.deepEqual(stateOf(running, "main")?.holds, { hook: 1 });
  });

  test("calls restore with undefined if the old code has no save", async (t) => {
    const given: unknown[] = [];
    const running = await hostOf(t, { main: (module) => void (module.restore = (saved) => given.push(saved)) });
    assert.deepEqual(given, []);
    await running.host.reload("main");
    assert.deepEqual(given, [undefined]);
  });

  test("swaps items in one step: receivers always see one of them", async (t) => {
    const there = new Set<object>();
    const counts: number[] = [];
    const running = await hostOf(t, {
      receiver(module) {
        const note = (change: () => void) => {
          change();
          counts.push(there.size);
          queueMicrotask(() => counts.push(there.size));
        };
        module.handle_items(
          "thing",
          (item) => note(() => there.add(item)),
          (item) => note(() => there.delete(item)),
        );
      },
      provider: (module) => module.add_item("thing", {}),
    });
    counts.length = 0;
    await running.host.reload("provider");
    assert.deepEqual(counts, [2, 1, 1, 1]);
  });

  for (const change of ["reload", "unload"] as const) {
    test(`stops timers at the ${change}, while earlier requests may still finish`, async (t) => {
      const withdrawn = Promise.withResolvers<void>();
      const finished = Promise.withResolvers<void>();
      const ticks: number[] = [];
      let beats = Promise.withResolvers<void>();
      let generation = 0;
      const running = await hostOf(t, {
        receiver(module) {
          module.handle_items(
            "thing",
            () => {},
            () => {
              withdrawn.resolve();
              return finished.promise;
            },
          );
          module.add_timer(0, () => {
            beats.resolve();
            return 0.001;
          });
        },
        main(module) {
          const own = ++generation;
          module.add_item("thing", {});
          module.add_timer(0, () => {
            ticks.push(own);
            return 0.001;
          });
        },
      });
      const changed = running.host[change]("main");
      await withdrawn.promise;
      ticks.length = 0;
      for (let beat = 0; beat < 5; beat += 1) {
        beats = Promise.withResolvers();
        await beats.promise;
      }
      assert.deepEqual(
        ticks.filter((own) => own === 1),
        [],
      );
      assert.equal(ticks.includes(2), change === "reload");
      finished.resolve();
      await changed;
    });
  }

  const working = "export default (module) => { module.hook('who', () => 'old'); return 'old'; };";
  const failures: Record<string, string> = {
    "cannot be parsed": "export default (module => {",
    "throws while it runs": "export default () => { throw new Error('no'); };",
    "fails in module.load":
      "export default (module) => { module.hook('who', () => 'new'); module.load = () => { throw 1; }; };",
    "fails to restore": "export default (module) => { module.restore = () => Promise.reject(new Error('no')); };",
    "provides what is refused": "export default (module) => module.add_item('net-provider', {});",
    "declares an option that does not hold":
      "export const options = { a_size: { type: 'integer', describe: 'Size.' } };\nexport default () => {};",
    "needs a module that is not there": "export default (module) => module.depends('nowhere');",
  };
  for (const [name, source] of Object.entries(failures)) {
    test(`with a new file that ${name} is refused, and the old instance keeps serving`, async (t) => {
      const running = await pluginHost(t, { "mod_a.ts": working }, { a_size: "big" });
      const before = stateOf(running, "a");
      await write(running.plugins, { "mod_a.ts": source });
      await assert.rejects(running.host.reload("a"));
      assert.equal(running.host.fire("who"), "old");
      assert.equal(running.host.exports("a"), "old");
      assert.deepEqual(stateOf(running, "a"), before);
      await write(running.plugins, { "mod_a.ts": working.replaceAll("old", "new") });
      await running.host.reload("a");
      assert.equal(running.host.fire("who"), "new");
    });
  }

  test("is refused if the module cannot save", async (t) => {
    const running = await hostOf(t, {
      stubborn(module) {
        module.save = () => {
          throw new Error("cannot save");
        };
        return module;
      },
    });
    const before = running.host.exports("stubborn");
    await assert.rejects(running.host.reload("stubborn"), /module\.save: cannot save/);
    assert.equal(running.host.exports("stubborn"), before);
  });

  test("waits for open requests on the old instance while the new one serves", async (t) => {
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    let generation = 0;
    const running = await hostOf(t, {
      receiver(module) {
        module.handle_items(
          "thing",
          () => {},
          () => gate.promise,
        );
      },
      busy(module) {
        const own = ++generation;
        module.add_item("thing", {});
        module.hook("who", () => own);
        module.unload = () => void seen.push(`unload ${own}`);
      },
    });
    const reloading = running.host.reload("busy");
    while (running.host.fire("who") === 1) await new Promise(setImmediate);
    assert.deepEqual(seen, []);
    gate.resolve();
    await reloading;
    assert.deepEqual(seen, ["unload 1"]);
  });

  test("state survives a reload through save and restore, but not an unload", async (t) => {
    const running = await hostOf(t, {
      counter(module) {
        const state = { count: 0 };
        module.save = () => state.count;
        module.restore = (saved) => {
          state.count = saved as number;
        };
        return state;
      },
    });
    running.host.exports<{ count: number }>("counter").count = 5;
    await running.host.reload("counter");
    assert.equal(running.host.exports<{ count: number }>("counter").count, 5);
    await running.host.unload("counter");
    await running.host.load("counter");
    assert.equal(running.host.exports<{ count: number }>("counter").count, 0);
  });
});

describe("a reload of a dependency", () => {
  const chain = (seen: string[]) => {
    const generations = new Map<string, number>();
    const running = (module: Module, ...dependencies: string[]) => {
      const own = (generations.get(module.name) ?? 0) + 1;
      generations.set(module.name, own);
      module.unload = () => void seen.push(`unload ${module.name}${own}`);
      return [`${module.name}${own}`, ...dependencies.map((name) => String(module.depends(name)))].join(">");
    };
    return {
      base: (module: Module) => running(module),
      middle: { name: "middle", depends: ["base"], load: (module: Module) => running(module, "base") },
      top: (module: Module) => running(module, "middle"),
      other: (module: Module) => running(module),
    };
  };

  test("reloads the dependants, which get the new one, and unloads the old ones, dependants first", async (t) => {
    const seen: string[] = [];
    const { host } = await hostOf(t, chain(seen));
    await host.reload("base");
    assert.equal(host.exports("base"), "base2");
    assert.equal(host.exports("middle"), "middle2>base2");
    assert.match(host.exports("top"), /^top\d>middle2>base2$/);
    assert.equal(host.exports("other"), "other1");
    assert.deepEqual(
      seen.map((line) => line.replace(/\d$/, "")),
      ["unload top", "unload middle", "unload base"],
    );
  });

  test("changes nothing if one dependant cannot be reloaded", async (t) => {
    const seen: string[] = [];
    let refuses = false;
    const { host } = await hostOf(t, {
      ...chain(seen),
      picky(module) {
        if (refuses) throw new Error("not with this one");
        return module.depends("base");
      },
    });
    refuses = true;
    await assert.rejects(host.reload("base"), /picky failed.*not with this one/);
    assert.equal(host.exports("base"), "base1");
    assert.equal(host.exports("picky"), "base1");
    assert.deepEqual(seen, []);
  });

  test("finds a cycle that the new file creates", async (t) => {
    const running = await pluginHost(t, {
      "mod_a.ts": "export default () => 'a';",
      "mod_b.ts": "export default (module) => module.depends('a');",
    });
    await write(running.plugins, { "mod_a.ts": "export default (module) => module.depends('b');" });
    await assert.rejects(running.host.reload("a"), { code: "MODULE_CYCLE", message: /a -> b -> a/ });
    assert.equal(running.host.exports("b"), "a");
  });
});
