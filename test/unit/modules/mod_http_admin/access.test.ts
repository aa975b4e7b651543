import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod } from "node:fs/promises";
import { request } from "node:http";
import { describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { configFrom, createHost } from "#core/index.ts";
import type { TestHost } from "#core/testing/index.ts";
import { type AdminAnswer, adminHost } from "./support.ts";

const token = "a-token-that-nobody-guesses";
const tokens = { [token]: { name: "deploy", scopes: ["admin", "read"] }, looking: { name: "dash", scopes: ["read"] } };

const NOBODY = 65_534;

type Fault = { readonly error: { readonly code: string; readonly message: string } };

/** A call through the port, over a connection of its own. */
function through<T = Fault>(
  running: TestHost,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<AdminAnswer<T> & { readonly headers: NodeJS.Dict<string | string[]> }> {
  return new Promise((resolve, reject) => {
    const sent = request(running.url(`/admin/api${path}`), { method, headers, agent: false });
    sent.on("error", reject).on("response", async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      const value = text === "" ? undefined : JSON.parse(text);
      resolve({ status: response.statusCode ?? 0, value, headers: response.headers });
    });
    sent.end(body);
  });
}

const json = { "Content-Type": "application/json" };

async function host(t: TestContext, config: Record<string, unknown> = {}) {
  return adminHost(t, { config: { modules_enabled: ["http_admin", "http_health"], ...config } });
}

describe("at /admin/api", () => {
  test("the user of the server may look and change things, without a secret", async (t) => {
    const running = await host(t);
    assert.equal((await through(running, "GET", "/status")).status, 200);
    const { status, value } = await through<{ by: string }>(running, "POST", "/modules/http_health/reload", json);
    assert.deepEqual([status, value.by], [200, `loopback uid ${process.getuid?.()}`]);
    const marked = await through(running, "POST", "/modules/http_health/reload", { "X-Modhost-Admin": "1" });
    assert.equal(marked.status, 200);
  });

  test("another program is started for callers of the socket alone, whoever else asks and however they are named", async (t) => {
    const named = { [token]: { name: "admin socket", scopes: ["admin", "read"] } };
    const running = await host(t, { admin_tokens: named });
    for (const headers of [json, { ...json, Authorization: `Bearer ${token}` }]) {
      for (const body of [{ command: '["/bin/true"]' }, { folder: "/" }]) {
        const { status, value } = await through(running, "POST", "/takeover", headers, JSON.stringify(body));
        assert.deepEqual([status, value.error.code], [403, "forbidden"]);
        assert.match(value.error.message, /only for callers of the admin socket/);
      }
    }
  });

  test("who cannot be told is refused, unless any user of the machine may", async (t) => {
    const running = await host(t);
    const unknown = await running.inject("/admin/api/status");
    assert.equal(unknown.status, 403);
    assert.match(unknown.body, /Which user of this machine calls cannot be told/);
    const open = await host(t, { admin_local: "any_user" });
    assert.equal((await open.inject("/admin/api/status")).status, 200);
    const closed = await host(t, { admin_local: "none" });
    assert.equal((await through(closed, "GET", "/status")).status, 403);
  });

  const isRoot = process.getuid?.() === 0;
  test("another user of the machine is refused, at the port and at the socket", { skip: !isRoot }, async (t) => {
    const running = await host(t);
    await chmod(running.folder, 0o777);
    const script = `
      const http = require("node:http");
      const ask = (place) => new Promise((resolve) => {
        const told = async (response) => resolve(response.statusCode + (await response.toArray()).join(""));
        http.get({ ...place, path: "/admin/api/status" }, told).on("error", ({ code }) => resolve(code));
      });
      (async () => console.log(JSON.stringify([
        await ask({ port: ${new URL(running.url("/")).port} }),
        await ask({ socketPath: ${JSON.stringify(running.socket)} }),
      ])))();`;
    const ran = await promisify(execFile)(process.execPath, ["-e", script], { uid: NOBODY, gid: NOBODY }).catch(
      (error: NodeJS.ErrnoException) => error,
    );
    if (ran instanceof Error) return t.skip(`no program can be run as another user here: ${ran.message}`);
    const [port, socket] = JSON.parse(ran.stdout) as [string, string];
    assert.match(port, /^403.*User 65534 of this machine is not the one that the server runs as/);
    assert.equal(socket, "EACCES");
  });

  test("a name that somebody made resolve to this machine is refused, with rebinding or without", async (t) => {
    const running = await host(t, { admin_hosts: ["ops.example"] });
    const status = async (name: string, more = {}) =>
      (await through(running, "GET", "/status", { Host: name, ...more })).status;
    assert.equal(await status("evil.example"), 403);
    assert.equal(await status("evil.example", { Origin: "http://evil.example" }), 403);
    assert.equal(await status("localhost.evil.example"), 403);
    assert.equal(await status("127.0.0.1.evil.example"), 403);
    assert.equal(await status("ops.example"), 200);
    assert.equal(await status("OPS.example.:80"), 200);
    assert.equal(await status("[::1]:5280"), 200);
    assert.equal(await status("evil.example", { Authorization: `Bearer ${token}` }), 401, "there are no tokens");
  });

  test("pages of other origins neither read nor change anything, with a token or without", async (t) => {
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
        const asked = method === "OPTIONS" ? { "Access-Control-Request-Method": "POST" } : {};
        const answer = await through(running, method, path, { ...json, ...headers, ...asked });
        assert.equal(answer.status, 403);
        assert.equal(answer.headers["access-control-allow-origin"], undefined);
      }
    }
    assert.equal(running.host.state, "running");
    const { origin } = new URL(running.url("/"));
    const own = await through(running, "GET", "/status", { Origin: origin, Authorization: `Bearer ${token}` });
    assert.equal(own.status, 200);
    const ambient = await through(running, "GET", "/status", { Origin: origin });
    assert.match(JSON.stringify(ambient.value), /Only the pages of the dashboard may ask this/);
  });

  test("what a form can send changes nothing", async (t) => {
    const running = await host(t);
    for (const type of ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"]) {
      const { status, value } = await through(running, "POST", "/stop", { "Content-Type": type }, '{"timeout": 1}');
      assert.deepEqual([status, value.error.code], [403, "forbidden"]);
      assert.match(value.error.message, /X-Modhost-Admin: 1/);
    }
    assert.equal((await through(running, "POST", "/stop")).status, 403);
    assert.equal(running.host.state, "running");
  });

  test("whoever comes through a proxy or from another machine needs a token", async (t) => {
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
    const stranger = await running.inject(away);
    assert.equal(stranger.status, 403);
    assert.match(stranger.json<Fault>().error.message, /other machines need a token/);
    const known = await running.inject({ ...away, headers: { Authorization: `Bearer ${token}` } });
    assert.equal(known.status, 200);
  });

  test("a token opens what its scopes say; a forged one is refused, and who has one stands in the record", async (t) => {
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
      const answer = await call("GET", "/status", forged);
      assert.deepEqual([answer.status, answer.headers["www-authenticate"]], [401, "Bearer"]);
    }
    const basic = Buffer.from(`admin:${token}`).toString("base64");
    const withBasic = await through(running, "GET", "/status", { Authorization: `Basic ${basic}` });
    assert.equal(withBasic.status, 401, "a browser would send it along by itself");
  });

  test("a wrong option of tokens fails the start without saying what was written", async () => {
    for (const admin_tokens of ["text", [""], { secret: { scopes: ["all"] } }, { secret: { scope: [] } }]) {
      const config = configFrom({ modules_enabled: ["http_admin"], http_ports: [0], https_ports: [], admin_tokens });
      await using server = createHost({ config, listen: false, log: false });
      await assert.rejects(server.start(), (error: Error) => {
        assert.match(error.message, /admin_tokens/);
        assert.doesNotMatch(error.message, /secret|text/);
        return true;
      });
    }
  });

  test("a body that is too large, no JSON, or of a wrong kind is refused", async (t) => {
    const running = await host(t);
    const post = async (body: string) => (await through(running, "POST", "/modules", json, body)).value.error.code;
    assert.equal(await post(JSON.stringify({ name: "x".repeat(2 ** 20) })), "too_large");
    assert.equal(await post("{"), "invalid");
    assert.equal(await post("[]"), "invalid");
    assert.equal(await post('{"name": {"toString": 1}}'), "invalid");
    assert.equal(await post('{"__proto__": {"x": 1}, "name": "x"}'), "invalid");
  });
});
