import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chown, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import type { Change, ServerStatus } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { ran } from "#test/unit/core/cli/called.ts";
import { pluginHost } from "#test/unit/core/module/support.ts";
import { adminHost, callAt } from "./support.ts";

const hello = (text: string) => `export default (module) => {
  module.depends("http");
  module.provides("http", { route: { GET: () => ${JSON.stringify(text)} } });
};`;

describe("the admin socket", () => {
  test("is accessible only to its user, and disappears with the server", async (t) => {
    const running = await adminHost(t);
    const { mode, uid } = await stat(running.socket);
    assert.deepEqual([mode & 0o777, uid], [0o600, process.getuid?.()]);
    const { status, value } = await running.call<ServerStatus>("GET", "/status");
    assert.equal(status, 200);
    const { pid, phase, data_path, modules, warnings, version } = value;
    assert.deepEqual([pid, phase, data_path, warnings], [process.pid, "running", running.folder, []]);
    assert.ok(modules.some(({ name }) => name === "http_admin"));
    assert.match(version, /^\d/);
    await running.stop();
    assert.equal(existsSync(running.socket), false);
  });

  test("is created again when somebody removes it, such as a program that cleans up", async (t) => {
    const running = await adminHost(t, { clock: "manual" });
    assert.equal((await running.call("GET", "/status")).status, 200);
    await rm(running.socket);
    await running.clock.advance(60);
    await eventually("the socket exists", () => existsSync(running.socket));
    assert.equal((await running.call("GET", "/status")).status, 200);
    assert.equal((await stat(running.socket)).mode & 0o777, 0o600);
  });

  test("is in a data folder that only its user can read, which a first start creates", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "modhost-first-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const data_path = join(folder, "srv", "data");
    const umask = process.umask(0o022);
    t.after(() => process.umask(umask));
    const running = await createTestHost({ config: { modules_enabled: ["http_admin"], data_path } });
    t.after(() => running.stop());
    assert.equal((await callAt(join(data_path, "admin.sock"), "GET", "/status")).status, 200);
    assert.equal((await stat(data_path)).mode & 0o777, 0o700);
  });

  test("replaces the socket file of a killed server", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "modhost-left-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, "admin.sock");
    const killed = createServer().listen(path);
    await once(killed, "listening");
    // Closing would remove the server's own file, but a kill by a signal does not.
    await rename(path, `${path}.kept`);
    await new Promise((resolve) => killed.close(resolve));
    await rename(`${path}.kept`, path);
    await assert.rejects(callAt(path, "GET", "/status"), { code: "ECONNREFUSED" });
    const refused = await ran(folder, ["status", "--socket", path]);
    assert.deepEqual(
      [refused.code, refused.stderr],
      [3, `modhost: No server runs here: the server that listened on ${path} has ended\n`],
    );
    const running = await createTestHost({ config: { modules_enabled: ["http_admin"], admin_socket: path } });
    t.after(() => running.stop());
    assert.equal((await callAt(path, "GET", "/status")).status, 200);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  const isRoot = process.getuid?.() === 0;
  test("is not contacted if another user created it", { skip: !isRoot }, async (t) => {
    const running = await adminHost(t);
    await chown(running.socket, 65_534, 65_534);
    const { code, stderr } = await ran(running.folder, ["status", "--socket", running.socket]);
    assert.equal(code, 3);
    assert.match(stderr, /is not a socket of this user's server: it belongs to uid 65534/);
  });

  test("belongs to one server: a second one with the same data folder or path does not start, and names the process", async (t) => {
    const first = await adminHost(t);
    const start = (config: Record<string, unknown>) =>
      assert.rejects(createTestHost({ config: { modules_enabled: ["http_admin"], ...config } }), ({ message }) => {
        assert.ok(message.includes(`the server of process ${process.pid}`), message);
        return Object.values(config).every((path) => message.includes(String(path)));
      });
    await start({ data_path: first.folder });
    await start({ admin_socket: first.socket });
    assert.equal((await first.call("GET", "/status")).status, 200);
  });

  test("is not opened at a path that is too long, with a warning that names the remedy", async (t) => {
    const admin_socket = `/tmp/${"x".repeat(110)}/admin.sock`;
    const running = await createTestHost({ config: { modules_enabled: ["http_admin"], admin_socket } });
    t.after(() => running.stop());
    const [note] = running.host.modules().flatMap(({ name, note = "" }) => (name === "http_admin" ? [note] : []));
    assert.match(note ?? "", /at most 107 bytes.*option admin_socket/);
  });
});

describe("through the socket", () => {
  test("modules are loaded, reloaded and unloaded, and each change is recorded with its caller", async (t) => {
    const running = await pluginHost(
      t,
      { "mod_http_one.js": hello("one") },
      {
        modules_enabled: ["http_admin"],
        plugin_autoload: false,
      },
    );
    const socket = join(running.folder, "admin.sock");
    const change = (path: string, body?: unknown) => callAt<Change>(socket, "POST", path, body);
    const loaded = await change("/modules", { name: "http_one" });
    assert.deepEqual([loaded.status, loaded.value.what, loaded.value.result], [200, "load http_one", "done"]);
    assert.equal(loaded.value.by, "admin socket");
    assert.equal(loaded.value.via, "http_admin");
    assert.equal(await (await running.fetch("/one")).text(), "one");
    assert.equal((await change("/modules", { name: "http_one" })).status, 409);
    assert.equal((await change("/modules/http_one/reload")).value.result, "done");
    assert.equal((await change("/modules/http_one/unload")).value.result, "done");
    const { status, value } = await change("/modules/http_one/reload");
    assert.deepEqual([status, value.result, value.error?.code], [409, "refused", "MODULE_NOT_LOADED"]);
    const { value: changes } = await callAt<Change[]>(socket, "GET", "/changes");
    assert.deepEqual(
      changes.map(({ what, result }) => `${what}: ${result}`),
      [
        "load http_one: done",
        "load http_one: refused",
        "reload http_one: done",
        "unload http_one: done",
        "reload http_one: refused",
      ],
    );
  });

  test("the responding module can be reloaded, and its response is sent first", async (t) => {
    const running = await adminHost(t);
    const { status, value } = await running.call<Change>("POST", "/modules/http_admin/reload");
    assert.deepEqual([status, value.result], [200, "done"]);
    assert.equal((await running.call("GET", "/status")).status, 200);
  });

  test("the response is sent before the server stops", async (t) => {
    const running = await adminHost(t);
    const { status, value } = await running.call<Change>("POST", "/stop");
    assert.deepEqual([status, value.what, value.result], [200, "stop", "done"]);
    await running.host.ended;
    assert.equal(running.host.state, "stopped");
  });

  test("unknown operations and fields are refused by name", async (t) => {
    const running = await adminHost(t);
    const error = async (method: string, path: string, body?: unknown) => {
      const { status, value } = await running.call<{ error: { code: string; message: string } }>(method, path, body);
      return [status, value.error.code, value.error.message];
    };
    assert.deepEqual((await error("GET", "/nothing")).slice(0, 2), [404, "not_found"]);
    assert.deepEqual(await error("DELETE", "/status"), [405, "method_not_allowed", "/status takes GET"]);
    assert.deepEqual((await error("POST", "/modules", {})).slice(0, 2), [400, "invalid"]);
    assert.match(String((await error("POST", "/modules", { nam: "x" }))[2]), /no field "nam".*name, host/);
    assert.match(String((await error("POST", "/stop", { timeout: "soon" }))[2]), /timeout must be a number/);
    const long = "x".repeat(4097);
    const bound = [400, "invalid", "The field name has 4097 characters; it takes at most 4096"];
    assert.deepEqual(await error("POST", "/modules", { name: long }), bound);
    assert.deepEqual(await error("POST", `/modules/${long}/reload`), bound);
    assert.deepEqual((await error("POST", "/modules", { name: "x".repeat(2 ** 20) })).slice(0, 2), [413, "too_large"]);
  });
});
