/** The process of a sandboxed module: what it starts with, what it prints, and how it ends. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { MadeToken } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { sourceFlags } from "#test/support/launchers.ts";
import { runModes, runningAs } from "#test/support/run_modes.ts";
import { callAt } from "#test/unit/modules/mod_http_admin/support.ts";
import { folderOf, logged, pluginHost, stateOf } from "../module/support.ts";
import { reconfigured } from "../operations/reconfigured.ts";

const skip = runModes.find(({ mode }) => mode === "sandboxed")?.skip ?? false;
const running = (names: readonly string[], grant = {}) => runningAs("sandboxed", {}, { names, grant });

/** Returns the ids of the processes that have the folder of a sandbox among their arguments. */
function processesOf(folder: string): number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").includes(folder) ? [Number(name)] : [];
    } catch {
      // It has ended in the meantime.
      return [];
    }
  });
}

/** Kills a process, unless it has ended with the one before it. */
function killIfAlive(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Starts a host in a process of its own, with the modules in a folder. */
async function separateHost(t: TestContext, folder: string) {
  const program = fileURLToPath(new URL("./host_program.ts", import.meta.url));
  const config = { plugin_paths: [folder], plugin_autoload: true, http_ports: [0], https_ports: [], data_path: folder };
  const words = [...sourceFlags, program, JSON.stringify({ ...config, ...running(["shop"]) })];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const [port] = (await once(createInterface(child.stdout), "line")) as [string];
  const get = async (path: string) =>
    (await fetch(`http://127.0.0.1:${port}/shop${path === "" ? "" : `/${path}`}`)).text();
  return { child, get };
}

const shop = `import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
export const depends = ["http"];
export default (module) => module.provides("http", { route: {
  GET: () => "shop",
  "GET /pid": () => String(process.pid),
  "GET /spin": () => { setImmediate(() => { for (;;); }); return "begun"; },
  "GET /env": () => JSON.stringify(process.env),
  "GET /tmp": () => JSON.stringify([tmpdir(), readdirSync(tmpdir())]),
  "GET /argv": () => JSON.stringify([process.argv.length, process.execArgv]),
  "GET /print": () => { for (let n = 0; n < 3000; n += 1) console.log("line %d", n); console.error("\\u001b[2Jan error"); return ""; },
  "GET /long": () => { process.stdout.write("x".repeat(1_000_000)); return ""; },
  "GET /fields": () => { module.log.info({ user: 1 }, "text"); return ""; },
  "GET /passwd": () => { try { return readFileSync("/etc/passwd", "utf8"); } catch ({ code }) { return code; } },
  "GET /headers": ({ request }) => JSON.stringify(request.headers.authorization ?? null),
} });`;

describe("a sandboxed process", { skip }, () => {
  test("cannot put characters that control a terminal into the reason for its end", async (t) => {
    const file = `import { writeSync } from "node:fs";
      export default () => {
        writeSync(2, "The sandbox cannot start (\\u001b]0;title\\u0007\\u009b2J)\\n");
        setTimeout(() => process.exit(1), 100);
        return new Promise(() => undefined);
      };`;
    const host = await pluginHost(t, { "mod_shop.js": file }, running(["shop"]));
    assert.match(stateOf(host, "shop")?.note ?? "", /The sandbox cannot start \(\\x1b\]0;title\\x07\\x9b2J\)/);
  });

  test("has the variables that are granted and no others, and an empty temporary folder of its own", async (t) => {
    Object.assign(process.env, { SHOP_KEY: "granted", SHOP_OTHER: "secret", MODHOST_SHOP_WORD: "option" });
    t.after(() => {
      for (const name of ["SHOP_KEY", "SHOP_OTHER", "MODHOST_SHOP_WORD"]) delete process.env[name];
    });
    const host = await pluginHost(t, { "mod_shop.js": shop }, running(["shop"], { env: ["SHOP_KEY"] }));
    const env = JSON.parse((await host.inject("/shop/env")).body);
    const [folder, entries] = JSON.parse((await host.inject("/shop/tmp")).body);
    assert.deepEqual(env, { SHOP_KEY: "granted", HOME: folder, TMPDIR: folder });
    assert.deepEqual(entries, []);
    assert.ok(existsSync(folder));
    assert.match((await host.inject("/shop/argv")).body, /^\[2,/);
    await host.stop();
    assert.equal(existsSync(dirname(folder)), false, "its folder is removed");
  });

  test("prints to the log, each line as one of the module, and not without bound", async (t) => {
    const host = await pluginHost(t, { "mod_shop.js": shop }, running(["shop"]));
    await host.inject("/shop/print");
    const lines = () => logged(host, "info").filter(({ msg }) => msg.startsWith("line "));
    await eventually("the end of its output is read", () =>
      logged(host, "warn").some(({ msg }) => /prints so much/.test(msg)),
    );
    assert.ok(lines().length >= 900 && lines().length < 2000, `${lines().length} lines are logged`);
    assert.equal(lines()[0]?.module, "shop");
    await host.inject("/shop/long");
  });

  test("reports a file that was refused, so that the log and its permissions name the grant", async (t) => {
    const host = await pluginHost(t, { "mod_shop.js": shop }, running(["shop"]));
    for (let times = 0; times < 2; times += 1) {
      assert.equal((await host.inject("/shop/passwd")).body, "ERR_ACCESS_DENIED");
    }
    const refused = () => logged(host, "warn").filter(({ msg }) => msg.startsWith("Refused: it may not read"));
    await eventually("it is logged", () => refused().length > 0);
    const grant = 'modules: { shop: { grant: { read: ["/etc/passwd"] } } }';
    assert.deepEqual(
      refused().map(({ msg }) => msg),
      [`Refused: it may not read /etc/passwd; to allow it, add ${grant}`],
    );
    const permission = stateOf(host, "shop")?.permissions?.find(({ what }) => what === "/etc/passwd");
    assert.deepEqual([permission?.is_granted, permission?.grant], [false, grant]);
  });

  test("gets no token of the server, even with a request that needs none, and gets other credentials", async (t) => {
    const protectedShop = shop.replace('provides("http", {', 'provides("http", { auth: "token",');
    const host = await pluginHost(
      t,
      { "mod_shop.js": protectedShop, "mod_open.js": shop.replaceAll("shop", "open") },
      { modules_enabled: ["http_admin"], ...running(["shop", "open"]) },
    );
    const { value: made } = await callAt<MadeToken>(join(host.folder, "admin.sock"), "POST", "/tokens", {
      name: "a",
      scopes: "app:shop",
    });
    const headers = { Authorization: `Bearer ${made.secret}` };
    assert.equal((await host.inject({ path: "/shop/headers", headers })).body, "null");
    const asPassword = `Basic ${Buffer.from(`user:${made.secret}`).toString("base64")}`;
    for (const Authorization of [headers.Authorization, asPassword]) {
      assert.equal((await host.inject({ path: "/open/headers", headers: { Authorization } })).body, "null");
    }
    const basic = { Authorization: "Basic abc" };
    assert.equal((await host.inject({ path: "/open/headers", headers: basic })).body, '"Basic abc"');
  });

  test("ends when its host is killed, and the next host removes what it has left", { timeout: 120_000 }, async (t) => {
    const folder = await folderOf(t, { "mod_shop.js": shop });
    const first = await separateHost(t, folder);
    const [temporary] = JSON.parse(await first.get("tmp")) as [string];
    const left = dirname(temporary);
    // It cannot see that its channel has closed.
    assert.equal(await first.get("spin"), "begun");
    assert.notDeepEqual(processesOf(left), []);
    first.child.kill("SIGKILL");
    await once(first.child, "exit");
    await eventually("the sandbox ends", () => processesOf(left).length === 0);
    assert.ok(existsSync(left));
    // A new folder stays, because it may belong to a host that is just starting.
    await utimes(left, new Date(0), new Date(0));
    const second = await separateHost(t, folder);
    await eventually("the folder is removed", () => !existsSync(left));
    assert.equal(await second.get(""), "shop");
  });

  test("leaves no process, descriptor or folder after reloads, crashes and the end of the host", {
    timeout: 120_000,
  }, async (t) => {
    const host = await pluginHost(t, { "mod_shop.js": shop }, { ...running(["shop"]), quarantine_pause: 0.05 });
    const folders: string[] = [];
    const look = async () => folders.push(dirname(JSON.parse((await host.inject("/shop/tmp")).body)[0]));
    const alive = () => folders.filter((folder) => processesOf(folder).length > 0);
    await look();
    const descriptors = readdirSync("/proc/self/fd").length;
    for (let at = 0; at < 5; at += 1) {
      await host.host.reload("shop");
      await look();
    }
    for (const pid of processesOf(folders.at(-1) as string)) killIfAlive(pid);
    await eventually("it is started again", async () => (await host.inject("/shop")).status === 200);
    await look();
    assert.equal(new Set(folders).size, folders.length);
    await eventually("the previous ones have gone", () => alive().length === 1);
    await eventually("their descriptors are closed", () => readdirSync("/proc/self/fd").length <= descriptors + 1);
    await host.host.unload("shop");
    assert.deepEqual(host.host.residue("shop"), []);
    await host.stop();
    await eventually("all have gone", () => alive().length === 0);
    assert.deepEqual(
      folders.filter((folder) => existsSync(folder)),
      [],
    );
  });

  test("is replaced when the way to run its module or its grant changes", { timeout: 120_000 }, async () => {
    const values = { plugin_paths: ["."], modules_enabled: ["http", "shop"] };
    await using host = await reconfigured(values, [], { "mod_shop.js": shop });
    const apply = async (modules: object | undefined) => {
      const plan = await host.apply({ ...values, ...(modules && { modules }) });
      return plan.modules.map(({ action, module, because }) => `${action} ${module}: ${because}`);
    };
    const get = async (path: string) => (await fetch(`http://127.0.0.1:${host.port()}/shop/${path}`)).text();
    const pid = async () => Number(await get("pid"));
    const folder = async () => JSON.parse(await get("tmp"))[0];
    const mode = () => host.host.modules().find(({ name }) => name === "shop")?.run;
    assert.deepEqual([await pid(), mode()], [process.pid, "trusted"]);
    assert.deepEqual(await apply({ shop: { run: "sandboxed" } }), ["exchange shop: modules.shop.run"]);
    assert.notEqual(await pid(), process.pid);
    const first = await folder();
    assert.equal(mode(), "sandboxed");
    assert.deepEqual(await apply({ shop: { run: "sandboxed", grant: { env: ["PATH"] } } }), [
      "exchange shop: modules.shop.grant",
    ]);
    assert.notEqual(await folder(), first);
    assert.equal(JSON.parse(await get("env")).PATH, process.env.PATH);
    assert.deepEqual(await apply({ shop: { run: "isolated" } }), ["exchange shop: modules.shop.run"]);
    assert.deepEqual([await pid(), mode()], [process.pid, "isolated"]);
    assert.deepEqual(await apply(undefined), ["exchange shop: modules.shop.run"]);
    assert.equal(mode(), "trusted");
  });
});
