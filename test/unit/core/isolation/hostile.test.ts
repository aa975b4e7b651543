/**
 * A sandboxed module that bypasses the code around it and writes to the socket of the channel: the
 * host ends it with the reason, and serves the others.
 */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "#test/support/eventually.ts";
import { runModes, runningAs } from "#test/support/run_modes.ts";
import { actRoutes, acts, raw } from "#test/support/sandbox/relay_acts.ts";
import { logged, pluginHost, stateOf } from "../module/support.ts";

const skip = runModes.find(({ mode }) => mode === "sandboxed")?.skip ?? false;

const evil = `${raw}
export const depends = ["http", "helper"];
export default (module) => {
  module.provides("http", { route: {
    GET: () => "fine",
${actRoutes}
  } });
};`;

const files = {
  "mod_evil.js": evil,
  "mod_helper.js": `export default () => ({
    double: (value) => 2 * value,
    secret: () => { globalThis.evilCalls = (globalThis.evilCalls ?? 0) + 1; return "secret"; },
    never: () => new Promise(() => undefined),
  });`,
  "mod_good.js": `export default (module) => {
    module.depends("http");
    for (const event of ["config-changed", "good-event"]) module.hook(event, () => { globalThis.evilCalls = (globalThis.evilCalls ?? 0) + 1; });
    module.provides("http", { route: { GET: () => "good" } });
  };`,
};
const common = {
  load_timeout: 60,
  unload_grace: 0.1,
  quarantine_pause: 0.05,
  quarantine_max_pause: 0.05,
  isolated_timeout: 30,
};
const running = (names: readonly string[], grant = {}) => runningAs("sandboxed", {}, { names, grant });

type Case = readonly [code: string, reason: RegExp];

/** Starts a host with a module for each case, and asserts that each fails for its reason. */
async function assertFailed(
  t: TestContext,
  cases: Readonly<Record<string, Case>>,
  fileOf: (each: Case) => string,
): Promise<void> {
  const own = Object.entries(cases).map(([name, each]) => [`mod_${name}.js`, fileOf(each)]);
  const host = await pluginHost(
    t,
    { ...Object.fromEntries(own), "mod_helper.js": files["mod_helper.js"] },
    { ...common, ...running(Object.keys(cases)), other_key: "secret" },
  );
  for (const [name, [, reason]] of Object.entries(cases)) {
    assert.equal(stateOf(host, name)?.status, "failed", name);
    assert.match(stateOf(host, name)?.note ?? "", reason, name);
  }
}

/** Measures which share of the time this process uses a processor. */
async function shareOfTime(ms: number): Promise<number> {
  const begun = process.cpuUsage();
  const since = performance.now();
  await sleep(ms);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000 / (performance.now() - since);
}

describe("messages of a hostile sandbox", { skip }, () => {
  test("end it with the reason or are ignored, and harm nobody", { timeout: 300_000 }, async (t) => {
    const host = await pluginHost(t, files, {
      ...common,
      ...running(["evil"], { call: { helper: ["double", "never"] } }),
    });
    assert.equal(stateOf(host, "evil")?.note, undefined);
    for (const [name, [, reason]] of Object.entries(acts)) {
      const seen = logged(host, "warn").length;
      const ends = () =>
        logged(host, "warn")
          .slice(seen)
          .find(({ msg }) => /its sandbox ended/.test(msg))?.msg;
      const { status } = await host.inject(`/evil/${name}`);
      if (reason === undefined) {
        assert.equal(status, 200, name);
        // The host has handled all messages before its response to a later request.
        assert.equal((await host.inject("/evil")).body, "fine", name);
        assert.equal(ends(), undefined, name);
      } else {
        await eventually(`${name} ends the sandbox`, () => ends() !== undefined);
        assert.match(ends() ?? "", reason, name);
        await eventually("it is started again", async () => (await host.inject("/evil")).status === 200);
      }
      assert.equal((await host.inject("/good")).body, "good", name);
      assert.equal(({} as { polluted?: unknown }).polluted, undefined, name);
      assert.equal((globalThis as { evilCalls?: number }).evilCalls, undefined, name);
    }
    const [forged] = logged(host, "info").filter(({ msg }) => msg.startsWith("forged"));
    assert.deepEqual([forged?.module, forged?.level, forged?.module_], ["evil", "info", "good"]);
    assert.equal((await host.inject("/late")).status, 404);
  });

  const shapes: Readonly<Record<string, Case>> = {
    nothing: ["undefined", /what it provides is not an object/],
    deep: [
      "of({ exports: (() => { let s = { kind: 'value' }; for (let n = 0; n < 9; n++) s = { kind: 'object', fields: { a: s } }; return s; })() })",
      /nested to a depth of at most 4/,
    ],
    thenable: [
      "of({ exports: { kind: 'object', fields: { then: { kind: 'function', path: ['then'] } } } })",
      /\.then is not a name that exports can have/,
    ],
    proto: [
      "of({ exports: { kind: 'object', fields: { constructor: { kind: 'function', path: [] } } } })",
      /\.constructor is not a name that exports can have/,
    ],
    kind: ["of({ exports: { kind: 'getter' } })", /the exports is not a value, a function or an object/],
    apps: ["of({ apps: [{ ...app, settings: { auth: { need: { kind: {} } } } }] })", /auth\.need\.kind is not a text/],
    cors: ["of({ apps: [{ ...app, settings: { cors: { enabled: 'yes' } } }] })", /cors\.enabled is not true or false/],
    name: ["of({ apps: [{ ...app, settings: { name: 'good' } }] })", /cannot provide an app by the name good/],
    path: [
      "of({ apps: [{ ...app, settings: { default_path: '/dashboard' } }] })",
      /cannot provide an app at \/dashboard: .*http_paths: \{ path: \/dashboard \}/,
    ],
    priority: ["of({ apps: [{ ...app, settings: { priority: 1 } }] })", /cannot give an app the priority 1/],
    routes: [
      "of({ apps: [1, 2, 3, 4, 5, 6].map((n) => ({ ...app, keys: Array.from({ length: 1000 }, (_, at) => 'GET /' + at), settings: { name: 'routes_' + n } })) })",
      /More than 5000 routes/,
    ],
    scopes: ["of({ scopes: [{ kind: 'app', help: '' }] })", /cannot declare token scopes of the kind app/],
    events: ["of({ events: ['server-changed'] })", /cannot hook server-changed/],
    has: ["of({ has: ['toString'] })", /has\[0\] is not one of save, restore/],
  };
  test("prevent its load when it provides what is not allowed", { timeout: 300_000 }, async (t) => {
    // The load is the first or the second call of the host; the forged replies arrive first.
    const file = (loaded: string) => `${raw}
      const app = { host: "*", keys: ["GET"], hasMiddleware: false, settings: {} };
      const of = (part) => ({ exports: { kind: "value" }, global: false, serves: false, apps: [], scopes: [], events: [], has: [], ...part });
      export const depends = ["http"];
      export default () => { for (const reply of [1, 2]) frame({ reply, value: ${loaded} }); };`;
    await assertFailed(t, shapes, ([loaded]) => file(loaded));
  });

  const declarations: Readonly<Record<string, Case>> = {
    option: [
      'export const options = { other_key: { type: "string", describe: "A secret." } };',
      /cannot declare the option other_key: name it option_other_key, or grant it with modules\.option\.grant\.options/,
    ],
    guard: [
      'export const options = { guard: { type: "object", keys: "apps", protects: true, describe: "Guards." } };',
      /cannot declare the option guard with protects or keys/,
    ],
    dependency: [
      'export const depends = ["helper"];',
      /may not call every function of helper: .* dependency: \{ grant: \{ call: \{ helper: true \} \} \}/,
    ],
  };
  test("prevent its load when it declares what is not allowed", async (t) => {
    await assertFailed(t, declarations, ([code]) => `${code}\nexport default () => undefined;`);
  });

  const pretenders: Readonly<Record<string, Case>> = {
    shop: [
      'export const options = { shop_admin_key: { type: "string", describe: "Not its own." } }; export default () => undefined;',
      /cannot declare the option shop_admin_key/,
    ],
    config: [
      `export default (module) => { setImmediate(() => call("announce", "config-changed", { options: ["x"] })); return new Promise(() => undefined); };`,
      /it announced the event config-changed, which is not its own/,
    ],
    pay: [
      'export const depends = ["http"]; export default (module) => module.provides("http", { name: "pay_desk", route: { GET: () => "pretended" } });',
      /cannot provide an app by the name pay_desk/,
    ],
  };
  test("prevent its load when its name is chosen so that names of others begin with it", async (t) => {
    const own = Object.entries(pretenders).map(([name, [code]]) => [`mod_${name}.js`, `${raw}\n${code}`]);
    const victim = `export default (module) => undefined;`;
    const host = await pluginHost(
      t,
      { ...Object.fromEntries(own), "mod_shop_admin.js": victim, "mod_pay_desk.js": victim },
      {
        ...common,
        ...running(Object.keys(pretenders)),
        modules_enabled: ["http", ...Object.keys(pretenders), "shop_admin", "pay_desk"],
        plugin_autoload: false,
      },
    );
    for (const [name, [, reason]] of Object.entries(pretenders)) {
      assert.equal(stateOf(host, name)?.status, "failed", name);
      assert.match(stateOf(host, name)?.note ?? "", reason, name);
    }
    for (const name of ["shop_admin", "pay_desk"]) assert.equal(stateOf(host, name)?.status, "loaded", name);
  });

  test("cannot make a module global to serve hosts for which it is not enabled", async (t) => {
    const file = `export const depends = ["http"];
      export const global = true;
      export default (module) => module.provides("http", { route: { GET: () => "everywhere" } });`;
    const start = (names: readonly string[]) =>
      pluginHost(
        t,
        { "mod_evil.js": file },
        {
          ...common,
          ...running(["evil"]),
          plugin_autoload: false,
          hosts: {
            "a.example": { modules_enabled: ["http", "evil"] },
            "b.example": { modules_enabled: ["http", ...names] },
          },
        },
      );
    const closed = await start([]);
    const open = await start(["evil"]);
    const failed = closed.host.modules().find(({ name }) => name === "evil");
    assert.match(failed?.note ?? "", /cannot provide an app on b\.example, where it is not enabled/);
    assert.equal((await closed.inject("http://b.example/evil")).status, 404);
    assert.equal((await open.inject("http://b.example/evil")).body, "everywhere");
  });

  test("cannot read the option of another module whose name begins with its own", async (t) => {
    const victim =
      'export const options = { shop_admin_key: { type: "string", describe: "Its key." } }; export default () => undefined;';
    const thief = `export const depends = ["http"];
      export default (module) => module.provides("http", { route: { GET: () => {
        try { return String(module.get_option("shop_admin_key")); } catch (error) { return error.code; }
      } } });`;
    for (const order of [
      ["shop", "shop_admin"],
      ["shop_admin", "shop"],
    ]) {
      const host = await pluginHost(
        t,
        { "mod_shop.js": thief, "mod_shop_admin.js": victim },
        {
          ...common,
          ...running(["shop"]),
          modules_enabled: ["http", ...order],
          plugin_autoload: false,
          shop_admin_key: "secret",
        },
      );
      assert.equal((await host.inject("/shop")).body, "undefined");
    }
  });

  test("are not made by calls of the module object, which refuses them with the remedy", async (t) => {
    const file = `export const depends = ["http"];
      const text = (run) => { try { run(); return "allowed"; } catch (error) { return error.message; } };
      export default (module) => {
        const late = () => [
          text(() => module.announce_event("config-changed", {})),
          text(() => module.announce_event("evil-event", {})),
          text(() => module.hook("http-finished", () => 1)),
          text(() => module.hook("module-loaded", () => 1)),
        ];
        module.provides("http", { route: { GET: () => JSON.stringify(late()) } });
      };`;
    const host = await pluginHost(t, { "mod_evil.js": file }, { ...common, ...running(["evil"]) });
    const texts = JSON.parse((await host.inject("/evil")).body) as string[];
    assert.match(texts[0] ?? "", /A sandboxed module cannot announce the event config-changed: begin the name/);
    assert.equal(texts[1], "allowed");
    assert.match(texts[2] ?? "", /A sandboxed module cannot hook http-finished: /);
    assert.equal(texts[3], "allowed");
  });

  test("with errors of the host's own codes do not prevent the start of the server", async (t) => {
    const file = `export default () => {
      throw Object.assign(new Error("forged"), { name: "ModhostError", code: "OPTION_INVALID" });
    };`;
    const host = await pluginHost(t, { ...files, "mod_evil.js": file }, { ...common, ...running(["evil"]) });
    assert.match(stateOf(host, "evil")?.note ?? "", /The module evil failed while .*forged/);
    assert.equal((await host.inject("/good")).body, "good");
  });

  const floods = {
    messages: 'for (;;) call("announce", "evil-event", { n: 1 });',
    "empty lines": 'for (;;) try { writeSync(1, "\\n".repeat(65536)); } catch {}',
  };
  for (const [what, code] of Object.entries(floods))
    test(`in a flood of ${what} leave the host most of its time`, { timeout: 120_000 }, async (t) => {
      const file = `${raw}
      export const depends = ["http"];
      export default (module) => module.provides("http", { route: {
        GET: () => "fine",
        "GET /flood": () => { setImmediate(() => { ${code} }); return "begun"; },
      } });`;
      const host = await pluginHost(
        t,
        { ...files, "mod_evil.js": file },
        { ...common, ...running(["evil"]), isolated_timeout: 60 },
      );
      await host.inject("/evil/flood");
      // It may use a second in advance.
      await sleep(2000);
      const shares: number[] = [];
      // This process may still have other work to end.
      while (shares.length < 5 && !shares.some((share) => share < 0.6)) shares.push(await shareOfTime(3000));
      assert.ok((shares.at(-1) as number) < 0.6, `the host spends these shares of its time on the flood: ${shares}`);
      assert.equal((await host.inject("/good")).body, "good");
      assert.equal(stateOf(host, "evil")?.status, "loaded");
    });
});
