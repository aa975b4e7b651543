import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod } from "node:fs/promises";
import { request } from "node:http";
import { describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { configFrom, createHost } from "#core/index.ts";
import { freePort } from "#test/support/free_port.ts";
import { relayTo } from "#test/support/relay.ts";
import { type AdminHost, type AdminResponse, adminHost } from "./support.ts";

const token = "a-token-that-nobody-guesses";
const tokens = { [token]: { name: "deploy", scopes: ["admin", "read"] }, looking: { name: "dash", scopes: ["read"] } };

const NOBODY = 65_534;

type Fault = { readonly error: { readonly code: string; readonly message: string } };

interface PortHost extends AdminHost {
  readonly port: number;
  /** A port at which another process forwards connections to the Admin API. */
  readonly relay: number;
}

/** A call through the port by another process, over a connection of its own. */
function through<T = Fault>(
  { relay }: Pick<PortHost, "relay">,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<AdminResponse<T> & { readonly headers: NodeJS.Dict<string | string[]> }> {
  return new Promise((resolve, reject) => {
    const sent = request({ port: relay, path: `/admin/api${path}`, method, headers, agent: false });
    sent.on("error", reject).on("response", async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      const value = text === "" ? undefined : JSON.parse(text);
      resolve({ status: response.statusCode ?? 0, value, headers: response.headers });
    });
    sent.end(body);
  });
}

const json = { "Content-Type": "application/json" };

async function host(t: TestContext, config: Record<string, unknown> = {}): Promise<PortHost> {
  const port = await freePort();
  const defaults = {
    modules_enabled: ["http_admin", "http_health"],
    admin_port: port,
    admin_interfaces: ["127.0.0.1"],
  };
  const running = await adminHost(t, { config: { ...defaults, ...config } });
  return { ...running, port, relay: await relayTo(port) };
}

describe("at the port of the Admin API", () => {
  test("the user of the server may read and change things without a secret", async (t) => {
    const running = await host(t);
    assert.equal((await through(running, "GET", "/status")).status, 200);
    const { status, value } = await through<{ by: string }>(running, "POST", "/modules/http_health/reload", json);
    assert.deepEqual([status, value.by], [200, `loopback uid ${process.getuid?.()}`]);
    const marked = await through(running, "POST", "/modules/http_health/reload", { "X-Modhost-Admin": "1" });
    assert.equal(marked.status, 200);
  });

  test("POST /takeover starts a program only for callers of the admin socket, even if another caller has its name", async (t) => {
    const named = { [token]: { name: "admin socket", scopes: ["admin", "read"] } };
    const running = await host(t, { admin_tokens: named });
    for (const headers of [json, { ...json, Authorization: `Bearer ${token}` }]) {
      for (const body of [{ command: '["/bin/true"]' }, { folder: "/" }]) {
        const { status, value } = await through(running, "POST", "/takeover", headers, JSON.stringify(body));
        assert.deepEqual([status, value.error.code], [403, "forbidden"]);
        assert.match(value.error.message, /Only callers of the admin socket can start/);
      }
    }
  });

  test("a caller whose user is unknown is refused, unless admin_local allows any user of the machine", async (t) => {
    const running = await host(t);
    const unknown = await running.ask("/admin/api/status");
    assert.equal(unknown.status, 403);
    assert.match(unknown.body, /Cannot identify the calling user/);
    const open = await host(t, { admin_local: "any_user" });
    assert.equal((await open.ask("/admin/api/status")).status, 200);
    const closed = await host(t, { admin_local: "none" });
    assert.equal((await through(closed, "GET", "/status")).status, 403);
  });

  const isRoot = process.getuid?.() === 0;
  test("another user of the machine is refused at the port and at the socket", { skip: !isRoot }, async (t) => {
    const running = await host(t);
    await chmod(running.folder, 0o777);
    const script = `
      const http = require("node:http");
      const ask = (target) => new Promise((resolve) => {
        const done = async (response) => resolve(response.statusCode + (await response.toArray()).join(""));
        http.get({ ...target, path: "/admin/api/status" }, done).on("error", ({ code }) => resolve(code));
      });
      (async () => console.log(JSON.stringify([
        await ask({ port: ${running.port} }),
        await ask({ socketPath: ${JSON.stringify(running.socket)} }),
      ])))();`;
    const ran = await promisify(execFile)(process.execPath, ["-e", script], { uid: NOBODY, gid: NOBODY }).catch(
      (error: NodeJS.ErrnoException) => error,
    );
    if (ran instanceof Error) return t.skip(`no program can be run as another user here: ${ran.message}`);
    const [port, socket] = JSON.parse(ran.stdout) as [string, string];
    assert.match(port, /^403.*User 65534 of this machine is not the user that runs the server/);
    assert.equal(socket, "EACCES");
  });

  test("a request for a name that somebody made resolve to this machine is refused", async (t) => {
    const running = await host(t, { admin_hosts: ["ops.example"] });
    const status = async (name: string, more = {}) =>
      (await through(running, "GET", "/status", { Host: name, ...more })).status;
    assert.equal(await status("evil.example"), 403);
    assert.equal(await status("evil.example", { Origin: "http://evil.example" }), 403);
    assert.equal(await status("localhost.evil.example"), 403);
    assert.equal(await status("127.0.0.1.evil.example"), 403);
    const browser = { "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" };
    assert.equal(await status("ops.example", browser), 200);
    assert.equal(await status("OPS.example.:80", browser), 200);
    assert.equal(
      await status("ops.example"),
      403,
      "over plain HTTP, browsers do not say there which page sends the request",
    );
    assert.equal(await status("[::1]:5280"), 200);
    assert.equal(await status("evil.example", { Authorization: `Bearer ${token}` }), 401, "no token exists");
  });

  test("pages of other origins can neither read nor change anything, with or without a token", async (t) => {
    const running = await host(t, {
      admin_tokens: tokens,
      http_default_cors_enabled: true,
      http_cors_override: { admin: { enabled: true } },
    });
    for (const headers of [
      { Origin: "http://evil.example" },
      { Origin: "null" },
      { Origin: "http://localhost:1" },
      { "Sec-Fetch-Site": "cross-site" },
      { "Sec-Fetch-Site": "same-site" },
      { Origin: "http://evil.example", Authorization: `Bearer ${token}` },
    ]) {
      for (const [method, path] of [
        ["GET", "/status"],
        ["POST", "/stop"],
        ["OPTIONS", "/stop"],
      ] as const) {
        const preflight = method === "OPTIONS" ? { "Access-Control-Request-Method": "POST" } : {};
        const response = await through(running, method, path, { ...json, ...headers, ...preflight });
        assert.equal(response.status, 403);
        assert.equal(response.headers["access-control-allow-origin"], undefined);
      }
    }
    assert.equal(running.host.state, "running");
    const origin = `http://localhost:${running.relay}`;
    const own = await through(running, "GET", "/status", { Origin: origin, Authorization: `Bearer ${token}` });
    assert.equal(own.status, 200);
    const ambient = await through(running, "GET", "/status", { Origin: origin });
    assert.match(JSON.stringify(ambient.value), /Only the pages of the dashboard may request this/);
  });

  test("a request that an HTML form can send changes nothing", async (t) => {
    const running = await host(t);
    for (const type of ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"]) {
      const { status, value } = await through(running, "POST", "/stop", { "Content-Type": type }, '{"timeout": 1}');
      assert.deepEqual([status, value.error.code], [403, "forbidden"]);
      assert.match(value.error.message, /X-Modhost-Admin: 1/);
    }
    assert.equal((await through(running, "POST", "/stop")).status, 403);
    assert.equal(running.host.state, "running");
  });

  test("callers behind a proxy or on another machine need a token", async (t) => {
    const running = await host(t, { admin_tokens: tokens, admin_local: "any_user" });
    for (const headers of [
      { "X-Forwarded-For": "127.0.0.1" },
      { Forwarded: "for=127.0.0.1" },
      { Via: "1.1 proxy" },
      { "X-Real-IP": "127.0.0.1" },
    ]) {
      assert.equal((await through(running, "GET", "/status", headers)).status, 403);
    }
    const away = { path: "/admin/api/status", remote_address: "192.0.2.7" };
    const stranger = await running.ask(away);
    assert.equal(stranger.status, 403);
    assert.match(stranger.json<Fault>().error.message, /other machines need a token/);
    const known = await running.ask({ ...away, headers: { Authorization: `Bearer ${token}` } });
    assert.equal(known.status, 200);
  });

  test("a token permits what its scopes say, and its name is in the record of changes", async (t) => {
    const running = await host(t, { admin_tokens: tokens });
    const call = (method: string, path: string, secret: string) =>
      through<{ by?: string }>(running, method, path, {
        ...json,
        Host: "far.example",
        Authorization: `Bearer ${secret}`,
      });
    const { status, value } = await call("POST", "/modules/http_health/reload", token);
    assert.deepEqual([status, value.by], [200, "token deploy"]);
    assert.equal((await call("GET", "/status", "looking")).status, 200);
    assert.equal((await call("POST", "/stop", "looking")).status, 403);
    for (const forged of ["", "x", token.slice(0, -1), `${token}x`, token.toUpperCase(), "[object Object]"]) {
      const response = await call("GET", "/status", forged);
      assert.deepEqual([response.status, response.headers["www-authenticate"]], [401, "Bearer"]);
    }
    const basic = Buffer.from(`admin:${token}`).toString("base64");
    const withBasic = await through(running, "GET", "/status", { Authorization: `Basic ${basic}` });
    assert.equal(withBasic.status, 401, "a browser would send it automatically");
  });

  test("a request that the server itself sends needs a token", async (t) => {
    for (const admin_local of ["same_user", "any_user"]) {
      const running = await host(t, { admin_local, admin_tokens: tokens });
      const own = await through({ relay: running.port }, "GET", "/config/file");
      assert.deepEqual([own.status, own.value.error.code], [403, "forbidden"]);
      assert.match(own.value.error.message, /Requests of the server itself need a token/);
      const known = await through({ relay: running.port }, "GET", "/status", { Authorization: `Bearer ${token}` });
      assert.equal(known.status, 200);
      assert.equal((await through(running, "GET", "/status")).status, 200, "another process of the same user may");
    }
  });

  test("a header with underscores in place of dashes is ignored", async (t) => {
    const running = await host(t);
    const status = async (method: string, headers: Record<string, string>) =>
      (await through(running, method, "/modules/http_health/reload", headers)).status;
    assert.equal(await status("POST", { X_Modhost_Admin: "1" }), 403);
    assert.equal(await status("POST", { Content_Type: "application/json" }), 403);
    const body = await through(running, "POST", "/modules", { ...json, Content_Length: "0" }, '{"name": 1}');
    assert.deepEqual([body.status, body.value.error.code], [400, "invalid"], "the real length of the body counts");
    const page = { "Sec-Fetch-Site": "cross-site", Sec_Fetch_Site: "none" };
    assert.equal((await through(running, "GET", "/status", page)).status, 403);
  });

  test("over HTTPS every caller needs a token, even one on this machine", async (t) => {
    const running = await host(t, { admin_local: "any_user", admin_tokens: tokens });
    const call = { path: "/admin/api/status", secure: true };
    const refused = await running.ask(call);
    assert.equal(refused.status, 403);
    assert.match(refused.body, /Calls over HTTPS need a token/);
    assert.equal((await running.ask({ ...call, headers: { Authorization: `Bearer ${token}` } })).status, 200);
  });

  test("a wrong value of admin_tokens fails the start, and the error does not contain the value", async () => {
    for (const admin_tokens of ["text", [""], { secret: { scopes: ["all"] } }, { secret: { scope: [] } }]) {
      const config = configFrom({
        modules_enabled: ["http_admin"],
        http_ports: [0],
        https_ports: [],
        admin_port: 0,
        admin_tokens,
      });
      await using server = createHost({ config, listen: false, log: false });
      await assert.rejects(server.start(), (error: Error) => {
        assert.match(error.message, /admin_tokens/);
        assert.doesNotMatch(error.message, /secret|text/);
        return true;
      });
    }
  });

  test("a body that is too large, not JSON, or of a wrong type is refused", async (t) => {
    const running = await host(t);
    const post = async (body: string) => (await through(running, "POST", "/modules", json, body)).value.error.code;
    assert.equal(await post(JSON.stringify({ name: "x".repeat(2 ** 20) })), "too_large");
    assert.equal(await post("{"), "invalid");
    assert.equal(await post("[]"), "invalid");
    assert.equal(await post('{"name": {"toString": 1}}'), "invalid");
    assert.equal(await post('{"__proto__": {"x": 1}, "name": "x"}'), "invalid");
  });
});
