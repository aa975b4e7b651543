/** Changes of the option `modules` while the host runs. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { planLines } from "#core/operations/plan_text.ts";
import { reconfigured } from "./reconfigured.ts";

const app = (name: string) => `
import { isMainThread, threadId } from "node:worker_threads";
export const isolated = true;
export const depends = ["http"];
export default (module) => module.provides("http", { name: "${name}", route: { "GET /": () => [isMainThread, threadId, process.env.GRANT_KEY].join() } });`;
const files = { "mod_one.mjs": app("one"), "mod_two.mjs": app("two") };
const common = { plugin_paths: ["."], modules_enabled: ["http", "one", "two"] };

describe("a changed grant", () => {
  test("reloads the module that it concerns and no other, and the plan says what the module may do", async (t) => {
    process.env.GRANT_KEY = "k";
    t.after(() => void delete process.env.GRANT_KEY);
    const grant = (names: string[], connect: string[]) => ({ modules: { one: { grant: { env: names, connect } } } });
    await using server = await reconfigured({ ...common, ...grant([], ["a.test:1"]) }, [], files);
    const one = await server.get("/one");
    const two = await server.get("/two");
    assert.ok(one.endsWith(","));
    const plan = await server.apply({ ...common, ...grant(["GRANT_KEY"], ["b.test:1"]) });
    assert.deepEqual(plan.permissions, [
      {
        module: "one",
        added: ["may connect to b.test:1", "may see the environment variable GRANT_KEY"],
        removed: ["may connect to a.test:1"],
      },
    ]);
    assert.deepEqual(plan.modules, [{ action: "exchange", module: "one", host: "*", because: ["modules.one.grant"] }]);
    assert.deepEqual(planLines(plan), [
      "one may connect to b.test:1 from now on",
      "one may see the environment variable GRANT_KEY from now on",
      "one may no longer connect to a.test:1",
      "exchange one (modules.one.grant)",
    ]);
    assert.ok((await server.get("/one")).endsWith(",k"));
    assert.equal(await server.get("/two"), two);
    assert.equal((await server.host.plan()).isEmpty, true);
  });

  test("changes nothing if it is wrong", async () => {
    await using server = await reconfigured(common, [], files);
    const one = await server.get("/one");
    await assert.rejects(server.apply({ ...common, modules: { one: { grant: { env: ["A B"] } } } }), {
      code: "CONFIG_INVALID",
    });
    await assert.rejects(server.apply({ ...common, modules: { one: { gant: {} } } }), /is grant meant\?/);
    // The plan itself is refused, before anything is loaded.
    const refused = { code: "OPTION_INVALID", message: /modules\.one\.grant\.read is "\/proc", but it contains facts/ };
    await server.write({ ...common, modules: { one: { run: "sandboxed", grant: { read: ["/proc"] } } } });
    await assert.rejects(server.host.plan(), refused);
    assert.equal(await server.get("/one"), one);
  });
});

describe("a changed setting of a module", () => {
  test("is listed by its own name, and moves the module if it says where it runs", async () => {
    await using server = await reconfigured(common, [], files);
    const limits = { message_size: "128KiB" };
    const plan = await server.apply({ ...common, modules: { two: { run: "trusted", limits } } });
    const { options } = plan;
    assert.deepEqual(
      options.find(({ name }) => name === "modules.two.run"),
      {
        name: "modules.two.run",
        host: "*",
        from: undefined,
        to: '"trusted"',
        applies: "now",
        readers: ["two"],
      },
    );
    assert.equal(options.find(({ name }) => name === "modules.two.limits.message_size")?.to, "131072");
    assert.deepEqual(plan.modules, [{ action: "exchange", module: "two", host: "*", because: ["modules.two.run"] }]);
    assert.match(await server.get("/two"), /^true,0,/);
    const other = await server.apply({ ...common, modules: { two: { run: "trusted" } } });
    assert.deepEqual(other.modules, []);
    assert.ok(other.options.every(({ name, to }) => name.startsWith("modules.two.limits.") && to === undefined));
  });

  test("is refused if the name of the module is misspelt, because the module would run without it", async () => {
    await using server = await reconfigured(common, [], files);
    await assert.rejects(server.apply({ ...common, modules: { onee: { run: "isolated" } } }), {
      code: "CONFIG_INVALID",
      message: /modules\.onee is set, but no module has this name: write one, which would otherwise run without/,
    });
    await assert.rejects(
      reconfigured({ ...common, modules: { onee: {} } }, [], files),
      /no module has this name: write one/,
    );
    await assert.rejects(
      reconfigured({ ...common, modules: { mod_one: {} } }, [], files),
      /the name is the one that modhost modules lists: write one/,
    );
    // A module that is not enabled is no misspelt one.
    await server.apply({ ...common, modules_enabled: ["http", "one"], modules: { two: { run: "isolated" } } });
    await assert.rejects(server.apply({ ...common, moduls: {} }), /no option has this name: write modules/);
  });

  test("is checked before the code of any module runs", async (t) => {
    const evaluated = `globalThis.evaluatedByMistake = true;\n${files["mod_one.mjs"]}`;
    t.after(() => delete (globalThis as { evaluatedByMistake?: boolean }).evaluatedByMistake);
    const wrong = [{ onee: {} }, { mod_one: {} }, { one: { run: "sandbox" } }, { one: { grant: { env: [1] } } }];
    for (const modules of wrong) {
      const started = reconfigured({ ...common, modules }, [], { ...files, "mod_one.mjs": evaluated });
      await assert.rejects(started, { code: "CONFIG_INVALID" }, JSON.stringify(modules));
    }
    assert.equal("evaluatedByMistake" in globalThis, false);
  });
});
