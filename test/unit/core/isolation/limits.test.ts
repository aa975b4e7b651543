/**
 * The limits of a module. Each test has a module that uses too much, and a trusted neighbour that
 * goes on as if nothing happened.
 */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestHost } from "#core/testing/index.ts";
import { eventually } from "#test/support/eventually.ts";
import { runModes } from "#test/support/run_modes.ts";
import { logged, pluginHost, stateOf } from "../module/support.ts";
import { reconfigured } from "../operations/reconfigured.ts";

const skip = runModes.find(({ mode }) => mode === "sandboxed")?.skip ?? false;

const greedy = `
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
export const depends = ["http"];
const kept = [];
// Process ids are the same in all namespaces.
const id = crypto.randomUUID();
const text = (error) => (error.cause ?? error).code + " " + (error.cause ?? error).message;
export default (module) => module.provides("http", { route: {
  GET: () => id,
  "GET /spin": () => { for (;;); },
  "GET /turns": async () => { for (;;) { const until = Date.now() + 20; while (Date.now() < until); await new Promise(setImmediate); } },
  "GET /used": () => { const { user, system } = process.cpuUsage(); return String((user + system) / 1000); },
  "GET /slow": async () => { await new Promise((resolve) => setTimeout(resolve, 1500)); return id; },
  "GET /heap": () => { for (;;) kept.push(new Array(1000).fill(kept.length)); },
  "GET /buffers": async () => { for (;;) { kept.push(Buffer.alloc(4 << 20, 1)); await new Promise((resolve) => setTimeout(resolve, 1)); } },
  "GET /threads": async () => {
    const { Worker } = await import("node:worker_threads");
    const online = (worker) => new Promise((resolve, reject) => worker.once("online", resolve).once("error", reject));
    for (let n = 0; n < 8; n += 1) await online(new Worker("setInterval(() => {}, 1000)", { eval: true }));
    return "8 threads";
  },
  // Between 80 % and all of 320 MiB, with the 25 MiB of a built sandbox or the 50 of one from sources.
  "GET /near": () => { kept.push(Buffer.alloc(250 << 20, 1)); return "kept"; },
  "GET /files": async () => { for (let n = 0; ; n += 1) { writeFileSync(join(tmpdir(), "f" + n), "x".repeat(100_000)); await new Promise((resolve) => setTimeout(resolve, 5)); } },
  "GET /deep": () => {
    const at = (name) => join(tmpdir(), name);
    const last = (name) => at(name) + ("/" + "d".repeat(199)).repeat(18);
    for (const name of ["one", "other"]) mkdirSync(last(name), { recursive: true });
    mkdirSync(at("hidden"));
    writeFileSync(at("hidden/file"), Buffer.alloc(3 << 20, 1));
    renameSync(at("hidden"), last("one") + "/hidden");
    renameSync(at("one"), last("other") + "/one");
    return "hidden";
  },
  "GET /given": () => {
    for (let count = 0; count < 2; count += 1) {
      const fd = openSync(join(tmpdir(), "given"), "w");
      writeSync(fd, Buffer.alloc(6 << 20, 1));
      spawn("/usr/bin/sleep", ["60"], { stdio: ["ignore", fd, "ignore"] });
      rmSync(join(tmpdir(), "given"));
      closeSync(fd);
    }
    return "given";
  },
  "GET /data": async () => { for (let n = 0; ; n += 1) { writeFileSync(join(module.data_path(), "d" + n), "x".repeat(100_000)); await new Promise((resolve) => setTimeout(resolve, 5)); } },
  "GET /file": () => { const fd = openSync(join(tmpdir(), "one"), "w"); for (let n = 0; ; n += 1) try { writeSync(fd, Buffer.alloc(1 << 20)); } catch (error) { return n + " " + error.code; } },
  "GET /fork": () => { for (let n = 0; n < 12; n += 1) spawn("/usr/bin/sleep", ["60"], { stdio: "ignore" }).on("error", () => 1); return "begun"; },
  "GET /work": () => { const turn = () => { const until = Date.now() + 20; while (Date.now() < until); setImmediate(turn); }; setImmediate(turn); return "begun"; },
  "GET /log": () => { for (let n = 0; n < 500; n += 1) module.log.info("own %d", n); for (let n = 0; n < 500; n += 1) console.log("printed %d", n); return ""; },
  "GET /fetch": async ({ request }) => {
    const results = [];
    for (let n = 0; n < 4; n += 1) results.push(await fetch(request.header("x-url")).then((r) => r.status, text));
    return JSON.stringify(results);
  },
  "GET /connect": async ({ request }) => {
    const { connect } = await import("node:net");
    const results = [];
    for (let n = 0; n < 4; n += 1) results.push(await new Promise((resolve) => {
      const socket = connect(Number(request.header("x-port")), "127.0.0.1", () => { socket.destroy(); resolve("open"); });
      socket.on("error", (error) => resolve(text(error)));
    }));
    return JSON.stringify(results);
  },
} });`;

const neighbour = `export const depends = ["http"];
  export default (module) => module.provides("http", { route: { GET: () => "good" } });`;

interface Settings {
  readonly limits?: object;
  readonly grant?: object;
  readonly run?: string;
  readonly namespaces?: string;
}

const settingsOf = ({ limits = {}, grant = {}, run = "sandboxed", namespaces = "auto" }: Settings) => ({
  modules: { greedy: { run, grant, limits, namespaces } },
});

function hostWith(t: TestContext, settings: Settings, own: object = {}): ReturnType<typeof pluginHost> {
  return pluginHost(
    t,
    { "mod_greedy.js": greedy, "mod_good.js": neighbour },
    { quarantine_pause: 0.05, isolated_timeout: 60, unload_grace: 5, ...settingsOf(settings), ...own },
  );
}

const noteOf = (host: TestHost): string => stateOf(host, "greedy")?.note ?? "";

const restarted = /^was restarted: its sandbox ended: /;
/**
 * If the host looks near the limit of memory, a fresh process takes over before the old one ends.
 */
const restartedOrReplaced = /^was (?:restarted: its sandbox ended|replaced by a fresh sandbox): /;

/** Asserts that the module is restarted for the reason, and that its neighbour goes on. */
async function assertRestarted(host: TestHost, first: string, reason: RegExp, note = restarted): Promise<void> {
  await eventually("it is started again", async () => {
    assert.equal((await host.inject("/good")).body, "good");
    const { status, body } = await host.inject("/greedy");
    return status === 200 && body !== first;
  });
  const state = stateOf(host, "greedy");
  assert.match(state?.note ?? "", note);
  assert.match(state?.note ?? "", reason);
  assert.equal(state?.note_level, "warn");
  assert.equal(stateOf(host, "good")?.note, undefined);
  assert.ok(logged(host, "warn").some(({ msg }) => reason.test(msg)));
}

interface Excess extends Settings {
  readonly path: string;
  readonly reason: RegExp;
  readonly note?: RegExp;
}

const excesses: Readonly<Record<string, Excess>> = {
  "spins in a request": {
    path: "/spin",
    limits: { request_cpu: 1 },
    reason: /a request used 1\.\d s of processor time, and limits\.request_cpu allows 1 s/,
  },
  "works for a request without an end, and lets other events happen": {
    path: "/turns",
    limits: { request_cpu: 1 },
    reason: /a request used \d\.\d s of processor time/,
  },
  "fills its heap": {
    path: "/heap",
    limits: { memory: "160MiB" },
    note: restartedOrReplaced,
    reason: /out of memory|memory, and limits\.memory allows 160 MiB/,
  },
  "fills memory outside of its heap": {
    path: "/buffers",
    limits: { memory: "160MiB" },
    note: restartedOrReplaced,
    reason: /it used \d+ MiB of memory, and limits\.memory allows 160 MiB/,
  },
  "writes many files": {
    path: "/files",
    limits: { disk: "4MiB" },
    reason: /it has [\d.]+ MiB on disk, and limits\.disk allows 4 MiB/,
  },
  "hides files in folders beyond the longest path": {
    path: "/deep",
    limits: { disk: "64MiB" },
    reason: /its folders are too deep to be measured for limits\.disk/,
  },
  "leaves deleted files open in a program": {
    path: "/given",
    limits: { disk: "8MiB" },
    grant: { run: ["/usr/bin/sleep"] },
    reason: /it has [\d.]+ MiB on disk, and limits\.disk allows 8 MiB/,
  },
  "starts many programs": {
    path: "/fork",
    limits: { processes: 4 },
    grant: { run: ["/usr/bin/sleep"] },
    reason: /it ran \d+ programs, and limits\.processes allows 4/,
  },
  "starts many programs without namespaces": {
    path: "/fork",
    limits: { processes: 4 },
    grant: { run: ["/usr/bin/sleep"] },
    namespaces: "off",
    reason: /it ran \d+ programs, and limits\.processes allows 4/,
  },
};

describe("the limits of a sandboxed module", { skip }, () => {
  for (const [what, { path, reason, note, ...settings }] of Object.entries(excesses)) {
    test(`restart a module that ${what}, and nobody else`, { timeout: 120_000 }, async (t) => {
      const host = await hostWith(t, settings);
      const { body: first } = await host.inject("/greedy");
      const done = host.inject(`/greedy${path}`);
      await assertRestarted(host, first, reason, note);
      // The request ends with the old process.
      const { status, headers } = await done;
      if (status !== 200) assert.deepEqual([status, headers["retry-after"]], [503, "1"]);
    });
  }

  test("let a fresh process take over near the limit of memory, and the old one ends its requests", {
    timeout: 120_000,
  }, async (t) => {
    const host = await hostWith(t, { limits: { memory: "320MiB" } });
    const { body: first } = await host.inject("/greedy");
    assert.equal((await host.inject("/greedy/near")).body, "kept");
    const slow = host.inject("/greedy/slow");
    await eventually("a fresh process takes over", async () => {
      const { status, body } = await host.inject("/greedy");
      assert.equal(status, 200, "no request is refused meanwhile");
      return body !== first;
    });
    assert.equal((await slow).body, first);
    assert.match(noteOf(host), /^was replaced by a fresh sandbox: it used \d+ MiB of memory, and limits\.memory/);
    assert.equal(logged(host, "warn").filter(({ msg }) => msg.startsWith("is replaced by a fresh sandbox")).length, 1);
  });

  test("slow down a module that uses more of the processor, and it goes on", { timeout: 120_000 }, async (t) => {
    const host = await hostWith(t, { limits: { cpu: 0.2 } });
    const { body: first } = await host.inject("/greedy");
    await host.inject("/greedy/work");
    await eventually("it is slowed down", () => noteOf(host).includes("it uses more of the processor than limits.cpu"));
    const used = async () => Number((await host.inject("/greedy/used")).body);
    const before = await used();
    const since = performance.now();
    await sleep(4000);
    const share = ((await used()) - before) / (performance.now() - since);
    assert.ok(share < 0.4, `it uses ${share} cores`);
    assert.equal((await host.inject("/greedy")).body, first);
    assert.equal((await host.inject("/good")).body, "good");
  });

  test("let a module that starts with too much on disk run until it writes more", { timeout: 120_000 }, async (t) => {
    const host = await hostWith(t, { limits: { disk: "4MiB" }, grant: { write: ["data"] } });
    const { body: first } = await host.inject("/greedy");
    void host.inject("/greedy/data");
    await assertRestarted(host, first, /on disk, and limits\.disk allows 4 MiB/);
    const { body: second } = await host.inject("/greedy");
    // The disk is looked at every 2 seconds.
    await sleep(5000);
    assert.equal((await host.inject("/greedy")).body, second);
    assert.match(noteOf(host), /^is over a limit and may write nothing more: it has/);
    void host.inject("/greedy/data");
    await assertRestarted(host, second, /on disk, and limits\.disk allows 4 MiB/);
  });

  test("leave room for worker threads, which reserve more memory than they use", { timeout: 60_000 }, async (t) => {
    const host = await hostWith(t, {});
    assert.equal((await host.inject("/greedy/threads")).body, "8 threads");
  });

  test("refuse a file that is larger, and the module goes on", { timeout: 60_000 }, async (t) => {
    const host = await hostWith(t, { limits: { disk: "4MiB" } });
    const { body: first } = await host.inject("/greedy");
    assert.equal((await host.inject("/greedy/file")).body, "4 EFBIG");
    assert.equal((await host.inject("/greedy")).body, first);
  });

  test("refuse requests beyond those in progress, for now", { timeout: 60_000 }, async (t) => {
    const host = await hostWith(t, { limits: { requests: 2 } });
    const slow = [host.inject("/greedy/slow"), host.inject("/greedy/slow")];
    await sleep(100);
    const { status, headers } = await host.inject("/greedy");
    assert.deepEqual([status, headers["retry-after"]], [503, "1"]);
    for (const response of slow) assert.equal((await response).status, 200);
    assert.equal((await host.inject("/greedy")).status, 200);
  });

  test("leave out log lines, count them, and keep those of others", { timeout: 60_000 }, async (t) => {
    const host = await hostWith(t, { limits: { log_lines: 10 } }, { isolated_timeout: 10 });
    await host.inject("/greedy/log");
    await eventually("lines are left out", () =>
      logged(host, "warn").some(({ msg }) => /left out from now on: limits\.log_lines allows 10 a second/.test(msg)),
    );
    const lines = logged(host, "info").filter(({ msg }) => /^(?:own|printed) /.test(msg));
    assert.ok(lines.length >= 50 && lines.length < 300, `${lines.length} lines are logged`);
    await eventually("they are counted", () =>
      logged(host, "warn").some(({ msg }) => /^Left out lines of its output \(limits\.log_lines\): \d+/.test(msg)),
    );
  });

  test("end subrequests with an error that names the limit", { timeout: 60_000 }, async (t) => {
    const { createServer } = await import("node:http");
    const server = createServer((_request, response) => response.end("there"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const host = await hostWith(t, { limits: { subrequests: 2 }, grant: { connect: [`127.0.0.1:${port}`] } });
    const headers = { "x-url": `http://127.0.0.1:${port}/`, "x-port": String(port) };
    const refused =
      /^LIMIT_REACHED The module greedy makes too many .*: modules\.greedy\.limits\.subrequests allows 2$/;
    for (const [path, allowed] of [
      ["/greedy/fetch", 200],
      ["/greedy/connect", "open"],
    ] as const) {
      const results = JSON.parse((await host.inject({ path, headers })).body);
      assert.deepEqual(results.slice(0, 2), [allowed, allowed]);
      for (const result of results.slice(2)) assert.match(result, refused);
      assert.equal(results.length, 4);
    }
  });

  test("apply to the running module when the configuration changes", { timeout: 60_000 }, async () => {
    const values = { modules_enabled: ["http", "./mod_greedy.js"] };
    await using host = await reconfigured({ ...values, ...settingsOf({}) }, [], { "mod_greedy.js": greedy });
    const get = (path: string) => fetch(`http://127.0.0.1:${host.port()}/greedy${path}`);
    const id = await (await get("")).text();
    await host.apply({ ...values, ...settingsOf({ limits: { requests: 1 } }) });
    const one = get("/slow");
    await sleep(200);
    assert.equal((await get("")).status, 503);
    assert.notEqual(await (await one).text(), id);
  });
});

describe("the limits of an isolated module", () => {
  test("bound its requests in progress and its log once they are set", { timeout: 60_000 }, async (t) => {
    const host = await hostWith(t, { run: "isolated", limits: { requests: 1, log_lines: 10 } });
    const slow = host.inject("/greedy/slow");
    await sleep(100);
    assert.equal((await host.inject("/greedy")).status, 503);
    assert.equal((await slow).status, 200);
    await host.inject("/greedy/log");
    const lines = logged(host, "info").filter(({ msg }) => msg.startsWith("own "));
    assert.ok(lines.length < 200, `${lines.length} lines are logged`);
  });
});
