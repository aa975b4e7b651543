/** Requests that guards allow and refuse. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { HttpModule } from "#core/http/index.ts";
import type { Module, ModuleFunction } from "#core/types.ts";
import { keepPassword } from "#modules/mod_http_guard/passwords.ts";
import { eventually } from "#test/support/eventually.ts";
import { startHost } from "#test/support/host.ts";
import { rawExchange } from "#test/support/raw.ts";
import { SocketClient } from "#test/support/websocket.ts";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";

const CHEAP = { ln: 4, r: 8, p: 1 };
const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

/** Returns an app that counts its requests, and returns the user that a proxy names. */
function counted() {
  const seen = { requests: 0, loads: 0 };
  const load: ModuleFunction = (module: Module) => {
    seen.loads += 1;
    module.provides("http", {
      route: {
        "GET /*": ({ request }) => {
          seen.requests += 1;
          const other = (request.raw.headers["x-remote-user"] ?? "nobody") as string;
          return { headers: { content_type: "text/plain" }, body: `${request.headers.x_remote_user} ${other}` };
        },
        "WS /ws": async (event) => {
          seen.requests += 1;
          const socket = event.accept();
          for await (const message of socket) await socket.send(message);
        },
      },
    });
  };
  return { seen, load };
}

async function guarded(http_guard: unknown, more: Record<string, unknown> = {}, enabled: string[] = []) {
  const { seen, load } = counted();
  let operator: Module | undefined;
  const host = await startHost({
    modules: { mod_hello: load, mod_open: counted().load, mod_operator: (module) => void (operator = module) },
    config: { modules_enabled: ["http", "http_guard", ...enabled], http_guard, ...more },
  });
  const ask = (
    path: string,
    headers: Record<string, string | string[]> = {},
    by: Parameters<typeof host.client>[0] = "HTTP/1.1",
  ) => host.client(by).request({ path, headers });
  return { seen, host, ask, operator: operator as Module, [Symbol.asyncDispose]: () => host.stop() };
}

describe("a guard", () => {
  test("allows only addresses that it lists and does not deny, and behind a trusted proxy those that it reports", async () => {
    await using app = await guarded({ hello: { allow: ["10.0.0.0/8", "2001:db8::/32"], deny: ["10.9.0.0/16"] } });
    const from = async (address: string) => (await app.ask("/hello/", { "X-Forwarded-For": address })).status;
    assert.deepEqual(
      await Promise.all(["10.1.2.3", "2001:db8::7", "10.9.2.3", "192.0.2.1"].map(from)),
      [200, 200, 403, 403],
    );
    assert.equal((await app.ask("/hello/")).status, 403, "the proxy itself");
    assert.equal(app.seen.requests, 2);
    assert.equal((await app.ask("/open/")).status, 200, "an app without a guard");
  });

  test("protects its app from paths with dot segments that lead there, even if another app resolves them", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "modhost-guard-"));
    t.after(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, "hello"));
    for (const name of ["hello/a", "a"]) await writeFile(join(folder, name), "a file");
    const files = { http_paths: { files: "/" }, http_files_dir: folder };
    await using app = await guarded({ hello: { allow: ["10.0.0.1"] } }, files, ["http_files"]);
    for (const path of [
      "/hello/a",
      "//hello/a",
      "/./hello/a",
      "/x/../hello/a",
      "/%2e/hello/a",
      "/x/%2e%2e%2fhello/a",
    ]) {
      const reply = await rawExchange(app.host.http, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      assert.match(reply, /^HTTP\/1\.1 403/, path);
    }
    const other = await rawExchange(app.host.http, "GET /x/../a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert.match(other, /^HTTP\/1\.1 200/);
  });

  test("requires the password of a user, and passes nothing of it on", async () => {
    const http_guard_users = { anna: await keepPassword("open: sesame", CHEAP), ben: await keepPassword("b", CHEAP) };
    await using app = await guarded({ hello: { users: ["anna"] } }, { http_guard_users, log_level: "debug" });
    const by = async (authorization?: string) =>
      (await app.ask("/hello/", authorization === undefined ? {} : { authorization })).status;
    const refused = await app.ask("/hello/");
    assert.deepEqual(
      [refused.status, refused.header("www-authenticate")],
      [401, 'Basic realm="hello", charset="UTF-8"'],
    );
    for (const wrong of ["anna:wrong", "ben:b", "carl:open: sesame", "anna"]) assert.equal(await by(basic(wrong)), 401);
    assert.equal(await by("Bearer open: sesame"), 401);
    assert.equal(app.seen.requests, 0);
    assert.equal(await by(basic("anna:open: sesame")), 200);
    assert.equal(await by(basic("anna:open: sesame")), 200, "known by its digest");
    assert.doesNotMatch(app.host.log(), /sesame|\$scrypt/);
  });

  test("accepts a token of the server with the scope of the app", async () => {
    await using app = await guarded({ hello: { token_scope: "hello" } });
    const { tokens } = app.operator.server;
    const { secret } = await tokens.create({ name: "good", scopes: ["app:hello"] });
    const other = await tokens.create({ name: "other", scopes: ["app:open"] });
    const by = async (token: string) => (await app.ask("/hello/", { authorization: `Bearer ${token}` })).status;
    assert.deepEqual([await by(secret), await by(other.secret), await by("made-up")], [200, 403, 401]);
    assert.equal(app.seen.requests, 1);
  });

  test("accepts identity headers only from a trusted proxy, in one spelling and once", async () => {
    const identity_headers = ["X-Remote-User", "X-Remote-Email"];
    const http_guard = { hello: { identity_headers }, open: { identity_headers, users: ["*"] } };
    const http_guard_users = { anna: await keepPassword("a", CHEAP) };
    await using app = await guarded(http_guard, { http_guard_users });
    assert.equal((await app.ask("/hello/", { "X-Remote-User": "anna" })).text, "anna anna");
    assert.equal((await app.ask("/hello/", { "X-Remote-User": "anna", X_Remote_User: "root" })).text, "anna anna");
    assert.equal((await app.ask("/hello/", { X_Remote_User: "root" })).status, 403);
    assert.equal((await app.ask("/hello/", { "X-Remote-User": "anna", "X.Remote.User": "root" })).text, "anna anna");
    assert.equal((await app.ask("/hello/", { "X-Remote-User": ["root", "anna"] })).status, 403);
    await using direct = await guarded(http_guard, { http_guard_users, trusted_proxies: [] });
    assert.equal((await direct.ask("/hello/", { "X-Remote-User": "anna" })).status, 403);
    const headers = { "X-Remote-User": "root", X_Remote_User: "root", authorization: basic("anna:a") };
    for (const by of ["HTTP/1.1", "HTTP/2"] as const) {
      assert.equal((await direct.ask("/open/", headers, by)).text, "undefined nobody", by);
    }
    assert.equal(direct.seen.requests, 0);
  });

  test("limits the requests of an address, and says when the next one may come", async () => {
    await using app = await guarded({ hello: { rate: "2/h", burst: 2 } });
    const from = async (address: string) => {
      const { status, header } = await app.ask("/hello/", { "X-Forwarded-For": address });
      return status === 429 ? Number(header("retry-after")) > 1700 : status;
    };
    const six = "2001:db8:0:1";
    assert.deepEqual([await from("10.0.0.1"), await from("10.0.0.1"), await from("10.0.0.1")], [200, 200, true]);
    assert.deepEqual([await from(`${six}::1`), await from(`${six}::2`), await from(`${six}:a::3`)], [200, 200, true]);
    assert.equal(await from("2001:db8:0:2::1"), 200);
  });

  test("redirects plain HTTP to HTTPS, except for proofs to authorities, and adds headers to every response", async () => {
    const hello = { https: true, hsts: "180d", secure_headers: true, headers: { "X-Frame-Options": "", "X-Own": "1" } };
    await using app = await guarded({ "*": hello });
    const sent = await app.ask("/hello/a?b=c");
    assert.deepEqual([sent.status, sent.header("location")], [308, `https://127.0.0.1:${app.host.https}/hello/a?b=c`]);
    assert.equal((await app.ask("/.well-known/acme-challenge/x")).status, 404);
    assert.equal(sent.header("strict-transport-security"), undefined, "by plain HTTP");
    assert.equal(app.seen.requests, 0);
    const behind = await app.ask("/hello/", { host: "a.test:80", "X-Forwarded-Proto": "http" });
    assert.equal(behind.header("location"), "https://a.test/hello/");
    const shown = await app.ask("/hello/", { "X-Forwarded-Proto": "https" });
    const names = ["strict-transport-security", "x-content-type-options", "x-frame-options", "x-own"];
    assert.deepEqual(
      names.map((name) => shown.header(name)),
      ["max-age=15552000", "nosniff", undefined, "1"],
    );
    assert.equal(
      (await app.ask("/nowhere", { "X-Forwarded-Proto": "https" })).header("x-own"),
      "1",
      "of an error page",
    );
  });

  test("accepts Strict-Transport-Security as it is written in headers", async () => {
    const text = "max-age=60; includeSubDomains";
    await using app = await guarded({ hello: { hsts: "180d", headers: { "strict-transport-security": text } } });
    const by = async (proto: string) =>
      (await app.ask("/hello/", { "X-Forwarded-Proto": proto })).header("strict-transport-security");
    assert.deepEqual([await by("https"), await by("http")], [text, undefined]);
  });

  test("counts its refusals by app and reason", async () => {
    await using app = await guarded({ hello: { deny: ["127.0.0.1"] } }, {}, ["http_openmetrics"]);
    await app.ask("/hello/");
    const { text } = await app.ask("/metrics");
    assert.match(
      text,
      /modhost_http_middleware_failed_total\{.*guard of hello.*\} 0\n/,
      "a refusal does not count as a failure",
    );
    assert.match(text, /modhost_http_guard_refusals_total\{app="hello",reason="address"\} 1\n/);
    const status = app.host.host.modules().find(({ name }) => name === "http_guard");
    assert.match(JSON.stringify(status), /guards hello/);
  });

  test("follows the options of the virtual host, also after a change", async () => {
    const deny = { hello: { deny: ["127.0.0.1"] } };
    const { load } = counted();
    const set = (b: unknown) => ({
      modules_enabled: ["http", "http_guard"],
      http_guard: deny,
      hosts: { "a.test": {}, "b.test": { http_guard: b } },
    });
    await using server = await reconfigured(set({}), [{ name: "mod_hello", load }]);
    const at = (host: string) => server.get("/hello/", { host });
    assert.match(await at("a.test"), /403/);
    assert.match(await at("b.test"), /nobody/);
    const plan = await server.apply(set({ hello: { users: ["*"] } }));
    assert.deepEqual(
      plan.modules.map(({ action, module }) => `${action} ${module}`),
      ["tell http_guard"],
    );
    assert.match(await at("a.test"), /403/);
    assert.match(await at("b.test"), /401/);
  });

  test("with invalid options prevents the start, with the reason", async () => {
    const wrong = [
      [{ hello: { allow: ["10.0.0/8"] } }, /http_guard\.hello\.allow is "10\.0\.0\/8"/],
      [{ hello: { rate: "fast" } }, /http_guard\.hello\.rate .*10\/s/],
      [{ hello: { headers: { "X-A": "1\n2" } } }, /http_guard\.hello\.headers\.X-A .* one line/],
      [{ hello: { identity_headers: ["X A"] } }, /identity_headers .* name of a header/],
      [{ hello: { user: ["a"] } }, /http_guard\.hello\.user .* the fields are allow/],
    ] as const;
    for (const [http_guard, message] of wrong) await assert.rejects(guarded(http_guard), message);
    const http_guard_users = { anna: "sesame" };
    await assert.rejects(guarded({}, { http_guard_users }), (error: Error) => {
      assert.match(error.message, /http_guard_users\.anna .*modhost password/);
      assert.doesNotMatch(error.message, /sesame/);
      return true;
    });
  });
});

test("that is changed applies at once, and does not affect open websockets and the app", async () => {
  const { seen, load } = counted();
  const line = async (name: string) => `# of this test\n${name}:${await keepPassword("a", CHEAP)}\n`;
  const users = { "users.txt": await line("anna") };
  const rest = { modules_enabled: ["http", "http_guard"], http_guard_users_file: "users.txt", unload_grace: 0 };
  const open = { ...rest, http_guard: { hello: { rate: "100/h", burst: 100 } } };
  await using server = await reconfigured(open, [{ name: "mod_hello", load }], users);
  const url = `http://127.0.0.1:${server.port()}/hello/ws`;
  using socket = await SocketClient.open(url);
  await server.apply({ ...rest, http_guard: { hello: { users: ["*"] } } });
  assert.match(await server.get("/hello/"), /401/);
  await assert.rejects(SocketClient.open(url), /401/);
  using known = await SocketClient.open(url, { headers: { authorization: basic("anna:a") } });
  for (const one of [socket, known]) {
    one.send("still there?");
    assert.equal(await one.next(), "still there?");
  }
  await writeFile(join(server.folder, "users.txt"), await line("benjamin"));
  await eventually("the file is read again", () => /Read the file of users again/.test(server.log()));
  assert.match(await server.get("/hello/", { authorization: basic("anna:a") }), /401/, "removed from the file");
  await assert.rejects(server.apply({ ...rest, http_guard: { hello: { rate: "no" } } }), /http_guard\.hello\.rate/);
  assert.match(await server.get("/hello/"), /401/, "a refused change has no effect");
  const unguarded = { ...open, modules_enabled: ["http"] };
  const refused = /http_guard is set, but the module http_guard is not loaded/;
  await server.write(unguarded);
  await assert.rejects(server.host.plan(), refused);
  await assert.rejects(server.host.apply(), refused);
  assert.match(await server.get("/hello/"), /401/, "a reload that would remove the guard changes nothing");
  await server.apply({ ...unguarded, modules_disabled: ["http_guard"] });
  assert.match(await server.get("/hello/"), /undefined nobody/);
  await assert.rejects(server.apply(unguarded), refused);
  await server.apply({ ...rest, http_guard: { hello: { users: ["*"] } } });
  assert.match(await server.get("/hello/"), /401/);
  await server.apply({ ...rest, http_guard: {} });
  assert.match(await server.get("/hello/"), /undefined nobody/);
  assert.deepEqual(server.host.exports<HttpModule>("http").middleware(), [], "no guard without an entry is listed");
  for (const one of [socket, known]) {
    one.send("still there, without the guard?");
    assert.equal(await one.next(), "still there, without the guard?");
  }
  assert.deepEqual([seen.loads, seen.requests], [1, 4]);
});
