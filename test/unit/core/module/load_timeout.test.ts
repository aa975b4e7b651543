import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Module, ModuleFunction } from "#core/types.ts";
import { hostOf, logged, pluginHost, stateOf, write } from "./support.ts";

const never = () => new Promise<never>(() => {});
const config = { load_timeout: 0.1 };
const reason = "it took longer than 0.1 s: let it settle sooner, or raise the option load_timeout";

describe("a module that does not settle", () => {
  const steps: Record<string, ModuleFunction> = {
    "running its default function": never,
    "running module.load": (module) => void (module.load = never),
    "adding the host one.example": (module) => {
      module.set_global();
      module.add_host = never;
    },
  };
  for (const [step, hang] of Object.entries(steps)) {
    test(`has failed if it hangs while ${step}: it holds nothing, and the others are loaded`, {
      timeout: 300_000,
    }, async (t) => {
      const running = await hostOf(
        t,
        {
          hanging(module) {
            module.hook("ping", () => "pong");
            module.on_release("a release that hangs too", never);
            return hang(module);
          },
          healthy: () => "fine",
        },
        { config: { ...config, hosts: { "one.example": {} } } },
      );
      const states = running.host.modules().filter(({ name }) => name === "hanging");
      for (const { status, note, holds } of states) {
        assert.deepEqual(
          { status, note, holds },
          {
            status: "failed",
            note: `The module hanging failed while ${step}: ${reason}`,
            holds: {},
          },
        );
      }
      assert.equal(states.length, 1);
      assert.equal(running.host.fire("ping"), undefined);
      assert.equal(running.host.exports("healthy", "one.example"), "fine");
    });
  }

  test("has failed if it hangs while its file is evaluated", { timeout: 300_000 }, async (t) => {
    const files = { "mod_awaits.js": "await new Promise(() => {});", "mod_healthy.js": "export default () => 'fine';" };
    const running = await pluginHost(t, files, config);
    assert.match(stateOf(running, "awaits")?.note ?? "", /being imported: it took longer than 0\.1 s/);
    assert.equal(running.host.exports("healthy"), "fine");
  });

  test("gets a note if it hangs in module.ready, and does not delay the server", { timeout: 300_000 }, async (t) => {
    const running = await hostOf(t, { hanging: (module) => void (module.ready = never) }, { config });
    assert.equal(running.host.state, "running");
    assert.equal(stateOf(running, "hanging")?.status, "loaded");
    assert.match(logged(running, "error")[0]?.msg ?? "", /running module\.ready: it took longer/);
  });
});

describe("an abandoned load", () => {
  for (const ending of ["resolves", "rejects"] as const) {
    test(`that ${ending} later is ignored`, { timeout: 300_000 }, async (t) => {
      const late = Promise.withResolvers<void>();
      const stray: unknown[] = [];
      const note = (error: unknown) => void stray.push(error);
      process.on("unhandledRejection", note);
      t.after(() => process.off("unhandledRejection", note));
      let stored: Module | undefined;
      const running = await hostOf(
        t,
        {
          async slow(module) {
            stored = module;
            await late.promise;
          },
        },
        { config },
      );
      if (ending === "resolves") late.resolve();
      else late.reject(new Error("too late"));
      await new Promise(setImmediate);
      assert.equal(stateOf(running, "slow")?.status, "failed");
      assert.throws(() => stored?.hook("ping", () => "pong"), { code: "MODULE_UNLOADED" });
      assert.deepEqual(stray, []);
    });
  }

  test("can be followed by a load that succeeds", { timeout: 300_000 }, async (t) => {
    let attempts = 0;
    const running = await hostOf(t, { slow: () => (++attempts === 1 ? never() : "fine") }, { config });
    await running.host.load("slow");
    assert.equal(running.host.exports("slow"), "fine");
  });

  const working = "export default (module) => { module.hook('who', () => 'old'); };";
  for (const [step, source] of [
    ["running its default function", "export default () => new Promise(() => {});"],
    ["running module.restore", "export default (module) => { module.restore = () => new Promise(() => {}); };"],
  ] as const) {
    test(`a reload that hangs while ${step} is refused, and the old instance keeps serving`, {
      timeout: 300_000,
    }, async (t) => {
      const running = await pluginHost(t, { "mod_a.js": working }, config);
      await write(running.plugins, { "mod_a.js": source });
      const message = `The module a failed while ${step}: ${reason}`;
      await assert.rejects(running.host.reload("a"), { code: "MODULE_FAILED", message });
      assert.equal(running.host.fire("who"), "old");
    });
  }

  test("a reload that hangs in module.save is refused", { timeout: 300_000 }, async (t) => {
    const running = await hostOf(t, { keeper: (module) => void (module.save = never) }, { config });
    await assert.rejects(running.host.reload("keeper"), /running module\.save: it took longer/);
    assert.equal(stateOf(running, "keeper")?.status, "loaded");
  });
});
