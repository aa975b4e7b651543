/** A module that keeps failing is quarantined, and comes back. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestHost } from "#core/testing/index.ts";
import type { LogLevel, Module } from "#core/types.ts";
import { HttpError } from "#core/util/errors.ts";
import { hostOf, logged, pluginHost, stateOf, write } from "../module/support.ts";

const config = { quarantine_failures: 3, quarantine_failed_requests: 3, quarantine_window: 30, quarantine_pause: 60 };

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

const isOut = (running: TestHost, name: string) => () => stateOf(running, name)?.status === "quarantined";

/** The source of an app that fails while a switch says so. */
const fragile =
  (fails: { now: boolean }, error = () => new Error("a secret of the inside")) =>
  (module: Module) => {
    module.depends("http");
    module.hook("ask", () => "fragile");
    module.provides("http", {
      route: {
        GET: () => {
          if (fails.now) throw error();
          return "well";
        },
        "GET /below/*": () => "below",
        "WS /socket": ({ accept }) => void accept(),
      },
    });
  };

const sound = (module: Module) => {
  module.depends("http");
  module.provides("http", { route: { GET: () => "sound" } });
};

describe("a module whose handlers keep throwing", () => {
  test("is quarantined: its apps respond with 503 and its resources are gone, while the others keep serving", {
    timeout: 300_000,
  }, async (t) => {
    const fails = { now: true };
    const running = await hostOf(t, { fragile: fragile(fails), sound }, { config });
    for (let count = 0; count < 3; count += 1) assert.equal((await running.inject("/fragile")).status, 500);
    await until(isOut(running, "fragile"));
    for (const path of ["/fragile", "/fragile/below/x"]) {
      const response = await running.inject(path);
      assert.equal(response.status, 503);
      const wait = Number(response.headers["retry-after"]);
      assert.ok(wait > 40 && wait <= 73, `Retry-After ${wait}`);
      assert.doesNotMatch(response.body, /secret|quarantine|fragile/);
    }
    assert.equal((await running.inject("/sound")).body, "sound");
    assert.equal(running.host.fire("ask"), undefined);
    const state = stateOf(running, "fragile");
    assert.match(
      state?.note ?? "",
      /3 of its 3 requests failed within 30 s, the last time handling a request: a secret/,
    );
    assert.ok((state?.quarantine?.next_try ?? 0) > (state?.quarantine?.since ?? 0) + 40);
    assert.deepEqual(state?.holds, {});
    assert.match(
      logged(running, "warn")
        .map(({ msg }) => msg)
        .join("\n"),
      /is in quarantine for/,
    );
  });

  test("is tried again after a pause", { timeout: 300_000 }, async (t) => {
    const fails = { now: true };
    const quick = { ...config, quarantine_pause: 0.05 };
    const running = await hostOf(t, { fragile: fragile(fails) }, { config: quick });
    for (let count = 0; count < 3; count += 1) await running.inject("/fragile");
    fails.now = false;
    await until(() => stateOf(running, "fragile")?.status === "loaded" && logged(running, "warn").length > 0);
    assert.equal((await running.inject("/fragile")).body, "well");
    assert.equal(running.host.fire("ask"), "fragile");
  });

  test("comes back at once by a reload, and is forgotten by an unload", { timeout: 300_000 }, async (t) => {
    const fails = { now: true };
    const running = await hostOf(t, { fragile: fragile(fails) }, { config });
    const breakIt = async () => {
      for (let count = 0; count < 3; count += 1) await running.inject("/fragile");
      await until(isOut(running, "fragile"));
    };
    await breakIt();
    fails.now = false;
    await running.host.reload("fragile");
    assert.equal((await running.inject("/fragile")).body, "well");
    fails.now = true;
    await breakIt();
    await running.host.load("fragile");
    assert.equal(stateOf(running, "fragile")?.status, "loaded");
    await breakIt();
    await running.host.unload("fragile");
    assert.equal(stateOf(running, "fragile"), undefined);
    assert.equal((await running.inject("/fragile")).status, 404);
    assert.deepEqual(running.host.residue("fragile"), []);
  });

  test("stays if it responds to most of its requests", { timeout: 300_000 }, async (t) => {
    const fails = { now: false };
    const running = await hostOf(t, { fragile: fragile(fails) }, { config });
    for (let count = 0; count < 8; count += 1) await running.inject("/fragile");
    fails.now = true;
    for (let count = 0; count < 7; count += 1) assert.equal((await running.inject("/fragile")).status, 500);
    assert.equal(stateOf(running, "fragile")?.status, "loaded");
  });

  test("stays if the values that it throws are meant as responses", { timeout: 300_000 }, async (t) => {
    const fails = { now: true };
    const meant = [new HttpError(404), new HttpError(503), 418, 500, Object.assign(new Error("gone"), { code: 410 })];
    let next = 0;
    const responses = fragile(fails, () => meant[next++ % meant.length] as Error);
    const running = await hostOf(t, { fragile: responses }, { config });
    for (let count = 0; count < 10; count += 1) assert.notEqual((await running.inject("/fragile")).status, 200);
    assert.equal(stateOf(running, "fragile")?.status, "loaded");
  });

  test("stays if quarantine_failures is 0, and if it is exempt, which is logged once", {
    timeout: 300_000,
  }, async (t) => {
    for (const own of [{ quarantine_failures: 0 }, { quarantine_exempt: ["mod_fragile"] }]) {
      const running = await hostOf(t, { fragile: fragile({ now: true }) }, { config: { ...config, ...own } });
      for (let count = 0; count < 6; count += 1) assert.equal((await running.inject("/fragile")).status, 500);
      assert.equal(stateOf(running, "fragile")?.status, "loaded");
      const warned = logged(running, "warn").filter(({ msg }) => /stays, though/.test(msg));
      assert.equal(warned.length, "quarantine_exempt" in own ? 1 : 0);
    }
  });
});

describe("failures also include", () => {
  test("timers, hooks, and unhandled promises", { timeout: 300_000 }, async (t) => {
    const running = await hostOf(
      t,
      {
        failing(module) {
          module.hook("poke", () => {
            throw new Error("in a hook");
          });
          module.hook("poke_later", () => Promise.reject(new Error("in a hook, later")));
          module.add_timer(0, () => {
            throw new Error("in a timer");
          });
        },
      },
      { config },
    );
    await until(() => logged(running, "error").length > 0);
    await assert.rejects(running.host.fire("poke_later") as Promise<unknown>);
    assert.throws(() => running.host.fire("poke"), /in a hook/);
    await until(isOut(running, "failing"));
  });

  test("Koa middleware, whose app responds with 503 as well", { timeout: 300_000 }, async (t) => {
    const running = await hostOf(
      t,
      {
        koan(module) {
          module.depends("http");
          module.provides("http", {
            middleware: () => {
              throw new Error("in middleware");
            },
          });
        },
      },
      { config },
    );
    for (let count = 0; count < 3; count += 1) assert.equal((await running.inject("/koan/x")).status, 500);
    await until(isOut(running, "koan"));
    const errors = logged(running, "error").length;
    const response = await running.inject({ method: "POST", path: "/koan/y", body: "text" });
    assert.equal(response.status, 503);
    assert.ok(Number(response.headers["retry-after"]) > 1);
    assert.equal(logged(running, "error").length, errors);
  });

  test("an uncaught exception quarantines its module at once, and one of no module is not contained", {
    timeout: 300_000,
  }, async (t) => {
    const files = {
      "mod_wild.js": "export default (module) => module.hook('error', () => new Error('from a wild callback'));",
    };
    const running = await pluginHost(t, files, config);
    assert.equal(running.host.contain(new Error("of this test")), false);
    assert.equal(running.host.contain(running.host.fire("error")), true);
    await until(isOut(running, "wild"));
    assert.match(stateOf(running, "wild")?.note ?? "", /threw an uncaught error: from a wild callback/);
  });

  test("an exception of an unloaded module is contained and named, and many of them do not fill the log", {
    timeout: 300_000,
  }, async (t) => {
    const files = {
      "mod_stormy.js": "export default (module) => module.hook('error', () => new Error('from a finalizer'));",
    };
    const running = await pluginHost(t, files, config);
    const error = running.host.fire("error");
    await running.host.unload("stormy");
    assert.equal(running.host.contain(error), true);
    const loggedAt = (level: LogLevel) => logged(running, level).filter(({ module }) => module === "stormy");
    assert.match(loggedAt("error").at(-1)?.msg ?? "", /^failed while .*from a finalizer/s);
    for (let count = 0; count < 1000; count += 1) running.host.report(error);
    assert.ok(loggedAt("error").length < 100, `${loggedAt("error").length} lines`);
    assert.equal(loggedAt("warn").filter(({ msg }) => /only counted from now on/.test(msg)).length, 1);
  });
});

describe("modules that depend on one in quarantine", () => {
  test("are quarantined and come back with it", { timeout: 300_000 }, async (t) => {
    const fails = { now: true };
    const running = await hostOf(
      t,
      {
        base: {
          name: "base",
          load(module) {
            fragile(fails)(module);
            return { value: 7 };
          },
        },
        user: {
          name: "user",
          depends: ["base"],
          load(module) {
            const { value } = module.depends<{ value: number }>("base");
            module.depends("http");
            module.provides("http", { route: { GET: () => `value ${value}` } });
          },
        },
      },
      { config },
    );
    for (let count = 0; count < 3; count += 1) await running.inject("/base");
    await until(isOut(running, "base"));
    assert.equal((await running.inject("/user")).status, 503);
    assert.match(stateOf(running, "user")?.note ?? "", /depends on base/);
    fails.now = false;
    await running.host.reload("user");
    assert.equal((await running.inject("/user")).body, "value 7");
    assert.equal((await running.inject("/base")).body, "well");
    assert.deepEqual(
      running.host.modules().map(({ status }) => status),
      ["loaded", "loaded", "loaded"],
    );
  });

  test("are not loaded while it is quarantined", { timeout: 300_000 }, async (t) => {
    const running = await hostOf(
      t,
      {
        base: fragile({ now: true }),
        user: { name: "user", load: (module) => void module.depends("base") },
      },
      { config },
    );
    await running.host.unload("user");
    for (let count = 0; count < 3; count += 1) await running.inject("/base");
    await until(isOut(running, "base"));
    await assert.rejects(running.host.load("user"), /base is quarantined.*reload it/);
    assert.equal(stateOf(running, "base")?.status, "quarantined");
  });

  test("keep it loaded if they are exempt", { timeout: 300_000 }, async (t) => {
    const running = await hostOf(
      t,
      {
        base: fragile({ now: true }),
        user: { name: "user", depends: ["base"], load: () => undefined },
      },
      { config: { ...config, quarantine_exempt: ["user"] } },
    );
    for (let count = 0; count < 5; count += 1) await running.inject("/base");
    assert.equal(stateOf(running, "base")?.status, "loaded");
    assert.match(
      logged(running, "warn")
        .map(({ msg }) => msg)
        .join("\n"),
      /user, in quarantine_exempt, needs it/,
    );
  });
});

describe("a quarantined module that is tried again", () => {
  test("stays quarantined with the new reason if it fails to load", { timeout: 300_000 }, async (t) => {
    const fails = { now: true };
    let loads = 0;
    const running = await hostOf(
      t,
      {
        worse(module) {
          module.depends("http");
          loads += 1;
          if (loads > 1) throw new Error("cannot even load");
          fragile(fails)(module);
        },
      },
      { config: { ...config, quarantine_pause: 0.05, quarantine_max_pause: 0.1 } },
    );
    for (let count = 0; count < 3; count += 1) await running.inject("/worse");
    await until(() => loads > 2 && isOut(running, "worse")());
    await until(() => /cannot even load/.test(stateOf(running, "worse")?.note ?? ""));
    assert.equal((await running.inject("/worse")).status, 503);
    assert.equal(running.host.modules().filter(({ name }) => name === "worse").length, 1);
    await assert.rejects(running.host.reload("worse"), /cannot even load/);
    assert.equal(stateOf(running, "worse")?.status, "quarantined");
  });

  test("is quarantined again if module.ready fails", { timeout: 300_000 }, async (t) => {
    let loads = 0;
    const running = await hostOf(
      t,
      {
        unready(module) {
          module.depends("http");
          const load = ++loads;
          fragile({ now: load === 1 })(module);
          module.ready = () => {
            if (load === 2) throw new Error("not ready");
          };
        },
      },
      { config: { ...config, quarantine_pause: 0.05 } },
    );
    for (let count = 0; count < 3; count += 1) await running.inject("/unready");
    await until(() => loads === 3 && stateOf(running, "unready")?.status === "loaded");
    assert.match(
      logged(running, "warn")
        .map(({ msg }) => msg)
        .join("\n"),
      /it did not become ready/,
    );
  });
});

test("on virtual hosts, only the instance that fails is quarantined", { timeout: 300_000 }, async (t) => {
  const running = await hostOf(
    t,
    {
      twin(module) {
        module.depends("http");
        module.provides("http", {
          route: {
            GET: () => {
              if (module.host === "a.example") throw new Error("here");
              return "fine";
            },
          },
        });
      },
    },
    { config: { ...config, hosts: { "a.example": {}, "b.example": {} } } },
  );
  const ask = (host: string) => running.inject({ path: "/twin", headers: { host } });
  for (let count = 0; count < 3; count += 1) await ask("a.example");
  await until(() => stateOf(running, "twin", "a.example")?.status === "quarantined");
  assert.equal((await ask("a.example")).status, 503);
  assert.equal((await ask("b.example")).body, "fine");
});

test("on virtual hosts, a reload brings back the quarantined instance with the new code", async (t) => {
  const code = (mark: string, fails: boolean) => `export default function (module) {
    module.depends("http");
    module.provides("http", { route: { GET: () => {
      if (${fails} && module.host === "a.example") throw new Error("here");
      return "${mark} " + module.host;
    } } });
  }\n`;
  const running = await pluginHost(
    t,
    { "mod_twin.js": code("old", true) },
    { ...config, hosts: { "a.example": {}, "b.example": {} } },
  );
  const ask = (host: string) => running.inject({ path: "/twin", headers: { host } });
  for (let count = 0; count < 3; count += 1) await ask("a.example");
  await until(() => stateOf(running, "twin", "a.example")?.status === "quarantined");
  await write(running.plugins, { "mod_twin.js": "export default nothing;" });
  await assert.rejects(running.host.reload("twin"));
  assert.equal(stateOf(running, "twin", "a.example")?.status, "quarantined");
  assert.equal((await ask("b.example")).body, "old b.example");
  await write(running.plugins, { "mod_twin.js": code("new", false) });
  await running.host.reload("twin");
  assert.deepEqual([(await ask("a.example")).body, (await ask("b.example")).body], ["new a.example", "new b.example"]);
});
