/** The process that waits for a sandboxed module whose operator asks for one. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ModuleRunner } from "#core/isolation/runner.ts";
import { type SpareRecipe, Spares } from "#core/isolation/spares.ts";
import type { TestHost } from "#core/testing/index.ts";
import { eventually } from "#test/support/eventually.ts";
import { runModes } from "#test/support/run_modes.ts";
import { logged, pluginHost, stateOf, write } from "../module/support.ts";
import { reconfigured } from "../operations/reconfigured.ts";

const skip = runModes.find(({ mode }) => mode === "sandboxed")?.skip ?? false;

const shop = (text = "first") => `import { readFileSync } from "node:fs";
export const depends = ["http"];
export default (module) => module.provides("http", { route: {
  GET: ({ request }) => {
    const file = request.header("x-file");
    if (file === "exit") process.exit(3);
    if (file === "memory") globalThis.kept = Buffer.alloc(250 << 20, 1);
    try { return file ? readFileSync(file, "utf8") : "${text}"; } catch ({ code }) { return code; }
  },
} });`;

/** Returns the processes that this one has started, each of which is a sandbox. */
function sandboxes(): number[] {
  return readdirSync(`/proc/${process.pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${process.pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
}

const withSpare = (own: object = {}) => ({
  quarantine_pause: 0.05,
  unload_grace: 0.1,
  modules: { shop: { run: "sandboxed", spare: true, ...own } },
});

interface Spared {
  /** The process of the module, and the one that waits. */
  readonly used: number;
  readonly spare: number;
}

/** Waits until a process is ready to take over. */
async function spared(isReady: () => boolean | undefined, used?: number): Promise<Spared> {
  const [first] = used === undefined ? sandboxes() : [used];
  await eventually("a process waits", () => isReady() === true && sandboxes().length === 2);
  const spare = sandboxes().find((pid) => pid !== first);
  assert.ok(first !== undefined && spare !== undefined);
  return { used: first, spare };
}

const hasSpare = (host: TestHost) => () => stateOf(host, "shop")?.has_spare;

async function sparedHost(
  t: TestContext,
  own = {},
): Promise<{ host: Awaited<ReturnType<typeof pluginHost>> } & Spared> {
  const host = await pluginHost(t, { "mod_shop/mod_shop.js": shop() }, withSpare(own));
  return { host, ...(await spared(hasSpare(host))) };
}

async function assertServedBy(host: TestHost, text: string, pid: number): Promise<void> {
  await eventually("it responds", async () => (await host.inject("/shop")).body === text);
  assert.deepEqual(sandboxes(), [pid]);
}

describe("a spare process", { skip }, () => {
  test("is not started unless the operator asks for one", async (t) => {
    const host = await pluginHost(t, { "mod_shop.js": shop() }, { modules: { shop: { run: "sandboxed" } } });
    await sleep(1500);
    assert.equal(sandboxes().length, 1);
    assert.equal(hasSpare(host)(), undefined);
  });

  test("takes over after a crash, and is replaced by another one", async (t) => {
    const { host, used, spare } = await sparedHost(t);
    await host.inject({ path: "/shop", headers: { "x-file": "exit" } });
    await assertServedBy(host, "first", spare);
    assert.match(stateOf(host, "shop")?.note ?? "", /^was restarted: its sandbox ended: process\.exit\(3\)/);
    const next = await spared(hasSpare(host), spare);
    assert.ok(![used, spare].includes(next.spare));
  });

  test("takes over near the limit of memory", async (t) => {
    const { host, used, spare } = await sparedHost(t, { limits: { memory: "320MiB" } });
    await host.inject({ path: "/shop", headers: { "x-file": "memory" } });
    await eventually("the process is replaced", () => !sandboxes().includes(used));
    assert.match(stateOf(host, "shop")?.note ?? "", /^was replaced by a fresh sandbox: it used \d+ MiB of memory/);
    assert.ok(sandboxes().includes(spare));
  });

  test("evaluates the file as it is when the module is reloaded", async (t) => {
    const { host, spare } = await sparedHost(t);
    await write(host.plugins, { "mod_shop/mod_shop.js": shop("second") });
    await host.host.reload("shop");
    await assertServedBy(host, "second", spare);
  });

  test("is not used when the folder of the module was replaced, which it could not read", async (t) => {
    const { host, spare } = await sparedHost(t);
    await rename(join(host.plugins, "mod_shop"), join(host.plugins, "previous"));
    await write(host.plugins, { "mod_shop/mod_shop.js": shop("second") });
    await host.host.reload("shop");
    assert.equal((await host.inject("/shop")).body, "second");
    assert.ok(!sandboxes().includes(spare));
  });

  test("is replaced when it dies, and the log says so", async (t) => {
    const { host, used, spare } = await sparedHost(t);
    process.kill(spare, "SIGKILL");
    await eventually("its end is noticed", () => hasSpare(host)() === false);
    assert.equal((await host.inject("/shop")).body, "first");
    const next = await spared(hasSpare(host), used);
    assert.notEqual(next.spare, spare);
    const lines = logged(host, "warn").map(({ msg }) => msg);
    const expected = "has lost its spare process, and gets another one in 1 s: its sandbox ended: SIGKILL";
    assert.deepEqual(
      lines.filter((line) => line.includes("spare")),
      [expected],
    );
    assert.equal(stateOf(host, "shop")?.note, undefined);
  });

  test("ends when the module is unloaded", async (t) => {
    const { host } = await sparedHost(t);
    await host.host.unload("shop");
    await eventually("no process is left", () => sandboxes().length === 0);
  });

  test("has ended when the host has stopped", async (t) => {
    const { host } = await sparedHost(t);
    await host.stop();
    assert.deepEqual(sandboxes(), []);
  });

  test("is not used after a change of the grant, and the next one has the new grant", async () => {
    const values = (own: object) => ({
      ...withSpare(own),
      plugin_paths: ["plugins"],
      modules_enabled: ["http", "shop"],
    });
    await using server = await reconfigured({ modules_enabled: ["http"] });
    await write(server.folder, { "plugins/mod_shop/mod_shop.js": shop() });
    await writeFile(join(server.folder, "prices.txt"), "prices");
    const prices = join(server.folder, "prices.txt");
    const get = (file = prices) =>
      fetch(`http://127.0.0.1:${server.port()}/shop`, { headers: { "x-file": file } }).then((response) =>
        response.text(),
      );
    await server.apply(values({}));
    const isReady = () => server.host.modules().find(({ name }) => name === "shop")?.has_spare;
    const before = await spared(isReady);
    assert.equal(await get(), "ERR_ACCESS_DENIED");
    await server.apply(values({ grant: { read: [prices] } }));
    assert.equal(await get(), "prices");
    const after = await spared(
      isReady,
      sandboxes().find((pid) => ![before.used, before.spare].includes(pid)),
    );
    assert.ok(![before.used, before.spare].includes(after.spare));
    await get("exit");
    await eventually("the spare has taken over", async () => (await get()) === "prices");
    assert.deepEqual(sandboxes(), [after.spare]);
  });
});

/** A process of a test, and what was done with it. */
interface FakeProcess {
  readonly runner: ModuleRunner;
  hasEnded: boolean;
  die(): void;
}

function fakeProcess(): FakeProcess {
  const { promise, resolve } = Promise.withResolvers<string>();
  const process: FakeProcess = {
    hasEnded: false,
    die: () => resolve("it died"),
    runner: {
      isAlive: true,
      ended: promise,
      channel: { call: async () => undefined },
      end: async () => {
        process.hasEnded = true;
        resolve("its end was requested");
      },
    } as unknown as ModuleRunner,
  };
  return process;
}

/** Spares with processes of the test. */
function fakes(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const made: FakeProcess[] = [];
  const state = { isQuiet: true, isExpected: true, fails: false };
  const warnings: unknown[] = [];
  const spares = new Spares();
  const recipe: SpareRecipe = {
    name: "shop",
    log: { warn: (...words: unknown[]) => void warnings.push(words[1]) } as unknown as SpareRecipe["log"],
    key: () => "rights",
    create: () => {
      if (state.fails) throw new Error("no process can be started");
      made.push(fakeProcess());
      return made.at(-1)!.runner;
    },
    isQuiet: () => state.isQuiet,
    isExpected: () => state.isExpected,
  };
  const pass = async (seconds: number) => {
    t.mock.timers.tick(seconds * 1000);
    await new Promise(setImmediate);
  };
  return { made, state, warnings, spares, recipe, pass };
}

describe("spares", () => {
  test("a process is started once the module has no requests, and after half a minute in any case", async (t) => {
    const { made, state, spares, recipe, pass } = fakes(t);
    state.isQuiet = false;
    spares.keep(recipe);
    for (let second = 0; second < 30; second += 1) await pass(1);
    assert.equal(made.length, 0);
    await pass(1);
    assert.equal(made.length, 1);
    spares.take("shop", "rights");
    state.isQuiet = true;
    await pass(1);
    assert.equal(made.length, 2);
  });

  test("processes that keep dying, or cannot be started, are replaced after longer and longer pauses", async (t) => {
    const { made, state, warnings, spares, recipe, pass } = fakes(t);
    spares.keep(recipe);
    for (const seconds of [1, 1, 2]) {
      await pass(seconds);
      made.at(-1)!.die();
      await new Promise(setImmediate);
    }
    assert.equal(made.length, 3);
    state.fails = true;
    await pass(4);
    state.fails = false;
    await pass(7.9);
    assert.equal(made.length, 3);
    await pass(0.1);
    assert.equal(made.length, 4);
    assert.deepEqual(warnings, [1, 2, 4, 8]);
  });

  test("after a crash the process waits for the restart, and no longer than for ten seconds", async (t) => {
    const { made, spares, recipe, pass } = fakes(t);
    const release = spares.keep(recipe);
    await pass(1);
    release(true);
    await pass(1);
    assert.equal(made[0]?.hasEnded, false);
    assert.equal(spares.take("shop", "rights"), made[0]?.runner);
    await pass(60);
    assert.equal(made.length, 1);
  });

  test("the process of a crashed module ends when that is unloaded", async (t) => {
    const { made, state, spares, recipe, pass } = fakes(t);
    const release = spares.keep(recipe);
    await pass(1);
    release(true);
    state.isExpected = false;
    await pass(0.25);
    assert.equal(made[0]?.hasEnded, true);
    assert.equal(spares.take("shop", "rights"), undefined);
  });

  test("a process with other rights is ended instead of used", async (t) => {
    const { made, spares, recipe, pass } = fakes(t);
    spares.keep(recipe);
    await pass(1);
    assert.equal(spares.take("shop", "other rights"), undefined);
    assert.equal(made[0]?.hasEnded, true);
  });

  test("one process waits for the instances of all hosts, until the last of them has ended", async (t) => {
    const { made, spares, recipe, pass } = fakes(t);
    const releases = [spares.keep(recipe), spares.keep(recipe)];
    await pass(5);
    assert.equal(made.length, 1);
    releases[0]?.(false);
    await pass(5);
    assert.equal(made[0]?.hasEnded, false);
    releases[1]?.(false);
    assert.equal(made[0]?.hasEnded, true);
    await pass(60);
    assert.equal(made.length, 1);
  });
});
