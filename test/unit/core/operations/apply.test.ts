/**
 * A changed configuration while the host runs: it affects only what it concerns, and a failure
 * changes nothing.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Module } from "#core/types.ts";
import { type Reconfigured, reconfigured } from "./reconfigured.ts";

/** Counts how often a module was loaded, and what it has read. */
function counted(name: string, options: string[], extra: Partial<Record<"changed", boolean>> = {}) {
  const seen = { loads: 0, unloads: 0, notified: [] as string[][] };
  const load = (module: Module) => {
    seen.loads += 1;
    module.depends("http");
    const values = options.map((option) => module.get_option(option));
    module.provides("http", { route: { "GET /": () => JSON.stringify(values) } });
    module.unload = () => void (seen.unloads += 1);
    if (extra.changed === true) {
      module.changed = (names) => {
        seen.notified.push([...names]);
        values.splice(0, values.length, ...options.map((option) => module.get_option(option)));
      };
    }
  };
  const describe = "For a test.";
  const declared = Object.fromEntries(
    options.map((option) => [
      option,
      { type: "any" as const, describe, ...(extra.changed ? { applies: "live" as const } : {}) },
    ]),
  );
  return { module: { name, load, options: declared }, seen };
}

describe("a changed configuration", { concurrency: 4 }, () => {
  test("replaces the modules that have read changed options, and no others", async () => {
    const one = counted("http_one", ["one_text"]);
    const other = counted("http_other", ["other_text"]);
    await using server = await reconfigured({ one_text: "a", other_text: "b" }, [one.module, other.module]);
    assert.equal(await server.get("/one"), '["a"]');
    const plan = await server.apply({ one_text: "changed", other_text: "b" });
    assert.deepEqual(plan.options, [
      { name: "one_text", host: "*", from: '"a"', to: '"changed"', applies: "now", readers: ["http_one"] },
    ]);
    assert.deepEqual(plan.modules, [{ action: "exchange", module: "http_one", host: "*", because: ["one_text"] }]);
    assert.equal(await server.get("/one"), '["changed"]');
    assert.equal(await server.get("/other"), '["b"]');
    assert.deepEqual([one.seen.loads, one.seen.unloads, other.seen.loads], [2, 1, 1]);
    assert.equal((await server.host.plan()).isEmpty, true);
  });

  test("notifies a module of its live options instead of replacing it, if the module handles changes", async () => {
    const live = counted("http_live", ["live_text"], { changed: true });
    await using server = await reconfigured({ live_text: 1 }, [live.module]);
    const plan = await server.apply({ live_text: 2 });
    assert.deepEqual(plan.modules, [{ action: "tell", module: "http_live", host: "*", because: ["live_text"] }]);
    assert.equal(await server.get("/live"), "[2]");
    assert.deepEqual([live.seen.loads, live.seen.notified], [1, [["live_text"]]]);
  });

  test("loads and unloads modules that it adds or removes, and those that nothing depends on", async () => {
    const files = {
      "mod_http_new.mjs": `export default (module) => { module.depends("base"); module.provides("http", { route: { "GET /": () => "new" } }); };`,
      "mod_base.mjs": "export default () => undefined;",
    };
    await using server = await reconfigured({ plugin_paths: ["."] }, [], files);
    const names = () => server.host.modules().map(({ name }) => name);
    await server.apply({ plugin_paths: ["."], modules_enabled: ["http", "http_new"] });
    assert.equal(await server.get("/new"), "new");
    assert.deepEqual(names().sort(), ["base", "http", "http_new"]);
    const plan = await server.apply({ plugin_paths: ["."] });
    assert.deepEqual(
      plan.modules.map(({ action, module, because }) => [action, module, because[0]]),
      [
        ["unload", "base", "nothing depends on it"],
        ["unload", "http_new", "modules_enabled"],
      ],
    );
    assert.deepEqual(names(), ["http"]);
    assert.deepEqual(server.host.residue("base"), []);
  });

  test("changes nothing if it is wrong: in its syntax, in its values, or as an empty file", async () => {
    const one = counted("http_one", ["one_text"]);
    await using server = await reconfigured({ one_text: "a" }, [one.module]);
    await assert.rejects(server.apply({ one_text: "b", http_idle_timeout: "soon" }), { code: "CONFIG_INVALID" });
    await assert.rejects(server.apply({ one_text: "b", modules_enabled: ["nowhere"] }), { code: "MODULE_NOT_FOUND" });
    for (const text of ["", "null"]) {
      await writeFile(join(server.folder, "modhost.config.json"), text);
      await assert.rejects(server.host.plan(), { code: "CONFIG_UNREADABLE", message: /it is empty; write \{\}/ });
      await assert.rejects(server.host.apply(), { code: "CONFIG_UNREADABLE" });
    }
    assert.equal(await server.get("/one"), '["a"]');
    assert.equal(one.seen.loads, 1);
    assert.equal(server.host.config.value("one_text"), "a");
  });

  test("is refused as a whole if one module does not load with it", async () => {
    const one = counted("http_one", ["one_text"]);
    const live = counted("http_live", ["live_text"], { changed: true });
    const picky = {
      name: "http_picky",
      options: { picky: { type: "string" as const, describe: "For a test." } },
      load(module: Module) {
        module.depends("http");
        if (module.get_option("picky") === "wrong") throw new Error("not like this");
      },
    };
    await using server = await reconfigured({ one_text: "a", picky: "right" }, [one.module, live.module, picky]);
    const before = server.host.listening();
    await assert.rejects(server.apply({ one_text: "b", picky: "wrong", live_text: 3, http_ports: [0, 0] }), {
      code: "CONFIG_NOT_APPLIED",
      message: /changing the modules failed: The module http_picky failed while running .*: not like this/,
    });
    assert.equal(await server.get("/one"), '["a"]');
    assert.deepEqual(server.host.listening(), before);
    assert.deepEqual([one.seen.unloads, live.seen.notified], [0, []]);
    assert.equal(
      server.host.modules().every(({ status }) => status === "loaded"),
      true,
    );
    const plan = await server.apply({ one_text: "b", picky: "right", live_text: 3 });
    assert.equal(plan.options.length, 2);
    assert.equal(await server.get("/one"), '["b"]');
  });

  test("is undone for a notified module if a later module refuses it", async () => {
    const live = counted("http_live", ["live_text"], { changed: true });
    const refusing = {
      name: "http_refusing",
      load(module: Module) {
        module.get_option("live_text");
        module.changed = () => {
          if (module.get_option("live_text") === 2) throw new Error("not two");
        };
      },
    };
    await using server = await reconfigured({ live_text: 1 }, [live.module, refusing]);
    await assert.rejects(server.apply({ live_text: 2 }), /running module.changed: not two/);
    assert.equal(await server.get("/live"), "[1]");
    assert.equal(live.seen.notified.length, 2);
  });

  test("opens new ports before it closes old ones, and connections stay open", async () => {
    const one = counted("http_one", ["one_text"]);
    await using server = await reconfigured({}, [one.module]);
    const first = server.port();
    const agent = await fetch(`http://127.0.0.1:${first}/one`);
    await agent.text();
    const free = createServer().listen(0, "127.0.0.1");
    await once(free, "listening");
    const { port } = free.address() as { port: number };
    await assert.rejects(server.apply({ http_ports: [port] }), /opening the ports failed: Port \d+ .* is taken/);
    assert.equal(server.port(), first);
    free.close();
    await once(free, "close");
    const plan = await server.apply({ http_ports: [port] });
    assert.deepEqual(
      plan.ports.map(({ action, port }) => [action, port]),
      [
        ["open", port],
        ["close", first],
      ],
    );
    assert.equal(server.port(), port);
    assert.equal(await server.get("/one"), "[null]");
    assert.equal(one.seen.loads, 1);
    // All addresses instead of one, with the same port.
    await server.apply({ http_ports: [port], http_interfaces: ["0.0.0.0"] });
    assert.equal(await server.get("/one"), "[null]");
  });

  test("waits for the next start with options that cannot change earlier", async () => {
    await using server = await reconfigured({});
    const before = server.host.config.value("data_path");
    const plan = await server.apply({ data_path: "elsewhere" });
    assert.deepEqual([plan.waiting, plan.modules], [["data_path"], []]);
    assert.equal(server.host.config.value("data_path"), before);
    assert.deepEqual((await server.host.plan()).waiting, ["data_path"]);
  });

  test("applies to the log at once", async () => {
    await using server = await reconfigured({});
    server.host.log.debug("unheard");
    await server.apply({ log_level: "debug" });
    server.host.log.debug("heard");
    assert.doesNotMatch(server.log(), /unheard/);
    assert.match(server.log(), /"msg":"heard"/);
  });

  test("warns of an option that nothing reads", async () => {
    await using server = await reconfigured({});
    await server.apply({ log_levle: "debug" });
    assert.match(server.log(), /Nothing reads the option log_levle: is log_level meant\?/);
  });

  test("is refused with a misspelt option that protects, at the start and later, and changes nothing", async () => {
    const wrong = { hosts: { "a.test": { http_midleware: [] } } };
    const said = /hosts\.a\.test\.http_midleware is set, but no option has this name: write http_middleware/;
    await assert.rejects(reconfigured(wrong), said);
    await using server = await reconfigured({ log_level: "warn" });
    await server.write(wrong);
    await assert.rejects(server.host.plan(), said);
    await assert.rejects(server.host.apply(), said);
    assert.equal(server.host.config.value("log_level"), "warn");
  });

  test("warns of a guard for an unknown app, and is refused if its name differs only in case", async () => {
    const { module } = counted("http_one", []);
    const guards = (http_guard: object) => ({ modules_enabled: ["http", "http_guard"], http_guard });
    await assert.rejects(
      reconfigured(guards({ One: {} }), [module]),
      /http_guard\.One is set, but the app is named one/,
    );
    await using server = await reconfigured(guards({ one: {}, two: {} }), [module]);
    assert.match(server.log(), /Nothing reads the option http_guard\.two"/);
    await assert.rejects(server.apply(guards({ ONE: {} })), /http_guard\.ONE is set, but the app is named one/);
    await server.apply(guards({ oen: {} }));
    assert.match(server.log(), /Nothing reads the option http_guard\.oen: is one meant\?/);
  });

  test("is refused if it removes the module of guards but not its option, as at a start", async () => {
    const { module } = counted("http_one", []);
    const http_guard = { one: {} };
    await using server = await reconfigured({ modules_enabled: ["http", "http_guard"], http_guard }, [module]);
    const said = /the module http_guard is not loaded, and the apps would be unguarded/;
    await assert.rejects(server.apply({ http_guard }), said);
    await assert.rejects(server.apply({ hosts: { "a.test": { http_guard } } }), said);
    // The refused change would also load another module.
    await assert.rejects(server.apply({ modules_enabled: ["http", "http_health"], http_guard }), said);
    await server.apply({ http_guard, modules_disabled: ["http_guard"] });
    assert.equal(
      server.host.modules().find(({ name }) => name === "http_guard"),
      undefined,
    );
  });

  test("serves new hosts, and stops serving removed ones", async () => {
    const one = counted("http_one", ["one_text"]);
    await using server = await reconfigured({ hosts: { "a.test": { one_text: "a" } } }, [one.module]);
    assert.equal(await server.get("/one", { host: "a.test" }).catch(String), '["a"]');
    const plan = await server.apply({ hosts: { "b.test": { one_text: "b" } } });
    assert.deepEqual(plan.hosts, { added: ["b.test"], removed: ["a.test"] });
    assert.deepEqual(
      server.host
        .modules()
        .map(({ name, host }) => `${name}@${host}`)
        .sort(),
      ["http@*", "http_one@b.test"],
    );
  });

  test("moves modules between the whole server and its hosts", async () => {
    const one = counted("http_one", ["one_text"]);
    await using server = await reconfigured({ one_text: "all" }, [one.module]);
    const instances = () => server.host.modules().map(({ name, host }) => `${name}@${host}`);
    await server.apply({ one_text: "all", hosts: { "a.test": { one_text: "a" }, "b.test": {} } });
    assert.deepEqual(instances().sort(), ["http@*", "http_one@a.test", "http_one@b.test"]);
    assert.equal(await server.get("/one", { host: "a.test" }), '["a"]');
    assert.equal(await server.get("/one", { host: "b.test" }), '["all"]');
    await server.apply({ one_text: "all" });
    assert.deepEqual(instances().sort(), ["http@*", "http_one@*"]);
    assert.equal(await server.get("/one"), '["all"]');
  });

  test("is refused if it disables a module that an enabled one depends on", async () => {
    const files = {
      "mod_http_new.mjs": `export default (module) => { module.depends("base"); module.depends("http"); module.provides("http", { route: { "GET /": () => "new" } }); };`,
      "mod_base.mjs": "export default () => undefined;",
    };
    const values = { plugin_paths: ["."], modules_enabled: ["http", "http_new"] };
    await using server = await reconfigured(values, [], files);
    await assert.rejects(server.apply({ ...values, modules_disabled: ["base"] }), /http_new needs base/);
    assert.equal(await server.get("/new"), "new");
    assert.equal(
      server.host.modules().every(({ status }) => status === "loaded"),
      true,
    );
  });

  test("reports no secret, neither the old nor the new one", async () => {
    const module = {
      name: "http_safe",
      options: { safe_word: { type: "string" as const, secret: true, describe: "For a test." } },
      load: (module: Module) => module.get_option("safe_word"),
    };
    await using server = await reconfigured({ safe_word: "first-secret" }, [module]);
    const plan = await server.apply({ safe_word: "second-secret" });
    assert.deepEqual([plan.options[0]?.from, plan.options[0]?.to], ["(secret)", "(secret)"]);
    server.host.log.info("first-secret second-secret");
    assert.doesNotMatch(server.log(), /-secret/);
  });

  test("reports no secret of its own if it fails", async () => {
    const module = {
      name: "http_safe",
      options: { safe_word: { type: "string" as const, secret: true, describe: "For a test." } },
      load(module: Module) {
        const word = module.get_option("safe_word");
        if (word !== "first-secret") throw new Error(`${word} is not what I know`);
      },
    };
    await using server = await reconfigured({ safe_word: "first-secret" }, [module]);
    await assert.rejects(server.apply({ safe_word: "second-secret" }), { code: "CONFIG_NOT_APPLIED" });
    server.host.log.info("second-secret");
    await server.host.stop({ timeout: 2 });
    const audit = await readFile(join(server.host.status().data_path, "audit.jsonl"), "utf8");
    assert.match(audit, /\(secret\) is not what I know/);
    assert.doesNotMatch(audit + server.log(), /-secret/);
  });

  test("moves a module into a worker and back by modules_isolated", async () => {
    const files = {
      "mod_http_moved.mjs": `
        import { isMainThread } from "node:worker_threads";
        export const depends = ["http"];
        export default (module) => module.provides("http", { route: { "GET /": () => String(isMainThread) } });`,
    };
    const values = { plugin_paths: ["."], modules_enabled: ["http", "http_moved"] };
    await using server = await reconfigured(values, [], files);
    assert.equal(await server.get("/moved"), "true");
    const plan = await server.apply({ ...values, modules_isolated: ["http_moved"] });
    assert.deepEqual(plan.modules, [
      { action: "exchange", module: "http_moved", host: "*", because: ["modules_isolated"] },
    ]);
    assert.equal(await server.get("/moved"), "false");
    assert.equal((await server.host.plan()).isEmpty, true);
    await server.apply(values);
    assert.equal(await server.get("/moved"), "true");
  });

  describe("a changed configuration, for a quarantined module,", () => {
    /**
     * Fails while it runs, so that it is quarantined at once. By an option, it also fails to load.
     */
    const fragile = {
      name: "http_fragile",
      options: { fragile_fails: { type: "boolean" as const, describe: "For a test." } },
      load(module: Module) {
        if (module.get_option("fragile_fails") === true) throw new Error("not like this");
        module.depends("http");
        module.hook("break", () => {
          throw new Error("broken");
        });
        module.provides("http", { route: { "GET /": () => "well" } });
      },
    };
    const picky = {
      name: "http_picky",
      options: { picky: { type: "string" as const, describe: "For a test." } },
      load(module: Module) {
        if (module.get_option("picky") === "wrong") throw new Error("not like this");
      },
    };
    const rules = { quarantine_failures: 1, quarantine_pause: 60 };
    const broken = async () => {
      const server = await reconfigured({ ...rules, picky: "right" }, [fragile, picky]);
      assert.throws(() => server.host.fire("break"));
      while (states(server)[0] !== "quarantined") await setImmediate();
      return server;
    };
    const states = ({ host }: Reconfigured) =>
      host.modules().flatMap(({ name, status }) => (name === "http_fragile" ? [status] : []));

    test("tries it again", async () => {
      await using server = await broken();
      const { modules } = await server.apply({ ...rules, picky: "other" });
      const retried = modules.filter(({ action }) => action === "retry").map(({ module }) => module);
      assert.deepEqual(retried, ["http_fragile"]);
      assert.deepEqual(states(server), ["loaded"]);
      assert.equal(await server.get("/fragile"), "well");
    });

    test("leaves it in quarantine and lists it once if it fails again", async () => {
      await using server = await broken();
      await server.apply({ ...rules, picky: "other", fragile_fails: true });
      assert.deepEqual(states(server), ["quarantined"]);
    });

    test("leaves it in quarantine if another module refuses", async () => {
      await using server = await broken();
      await assert.rejects(server.apply({ ...rules, picky: "wrong" }), { code: "CONFIG_NOT_APPLIED" });
      assert.deepEqual(states(server), ["quarantined"]);
      assert.match(await server.get("/fragile"), /503/);
      await server.host.reload("http_fragile");
      assert.equal(await server.get("/fragile"), "well");
    });
  });
});
