/**
 * The dashboard and the Admin API have their own origin, and the ports of apps do not serve them.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:https";
import { createServer } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { Config } from "#core/config/index.ts";
import { createHost } from "#core/index.ts";
import type { Module } from "#core/types.ts";
import { freePort } from "#test/support/free_port.ts";
import { folderOf } from "#test/unit/core/module/support.ts";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";
import { adminHost, callAt } from "./support.ts";

const token = "a-token-that-nobody-guesses";
const navigation = {
  Accept: "text/html,*/*",
  "Sec-Fetch-Site": "none",
  "Sec-Fetch-Mode": "navigate",
  "Sec-Fetch-Dest": "document",
};
const loopback = { admin_interfaces: ["127.0.0.1"] };

async function serving(t: TestContext, more: Record<string, unknown> = {}, load?: (module: Module) => void) {
  const admin_port = await freePort();
  const config = { admin_port, ...loopback, admin_local: "any_user", admin_tokens: [token], ...more };
  const modules = load === undefined ? [] : [{ name: "http_mine", depends: ["http"], load }];
  const host = await adminHost(t, { config, modules });
  return { host, address: `http://localhost:${admin_port}/admin/` };
}

describe("the ports of apps", () => {
  test("redirect browsers of this machine to the dashboard, with path and query", async (t) => {
    const { host, address } = await serving(t);
    for (const [path, to] of [
      ["/admin", ""],
      ["/admin/", ""],
      ["/admin/modules/http_a?x=1&y=%2F", "modules/http_a?x=1&y=%2F"],
      ["/admin/api/status", "api/status"],
      ["/admin//evil.example/", "evil.example/"],
    ] as const) {
      for (const method of ["GET", "HEAD"]) {
        const { status, headers } = await host.inject({ path, method, headers: navigation });
        assert.deepEqual([status, headers.location, headers["cache-control"]], [302, `${address}${to}`, "no-store"]);
      }
    }
    const typed = await host.inject({ path: "/admin/", headers: { Accept: "text/html" } });
    assert.equal(typed.headers.location, address, "a browser that sends no Sec-Fetch headers");
  });

  test("serve no operation of the Admin API and no page of the dashboard, with or without a token", async (t) => {
    const { host } = await serving(t);
    const local = { Authorization: `Bearer ${token}`, "X-Modhost-Admin": "1" };
    for (const headers of [
      {},
      local,
      { ...navigation, Accept: "*/*" },
      { ...navigation, "Sec-Fetch-Dest": "iframe" },
    ]) {
      for (const [method, path] of [
        ["GET", "/admin/api/status"],
        ["GET", "/admin/api/openapi.json"],
        ["POST", "/admin/api/modules/http/reload"],
        ["OPTIONS", "/admin/api/status"],
        ["POST", "/admin/session"],
        ["DELETE", "/admin/session"],
        ["GET", "/admin/files/0/admin/main.js"],
        ["GET", "/admin/"],
        ["POST", "/admin"],
      ] as const) {
        for (const who of [{}, { remote_address: "192.0.2.7" }, { secure: true }]) {
          const response = await host.inject({ method, path, headers, ...who });
          assert.equal(response.status, 404, `${method} ${path}`);
          assert.doesNotMatch(response.body, /page-key|"version"/);
          assert.equal(response.headers["set-cookie"], undefined);
        }
      }
    }
  });

  test("respond 404 with the address of the Admin API to a program of this machine, and a plain 404 to others", async (t) => {
    const { host, address } = await serving(t);
    const here = await host.inject("/admin/api/status");
    assert.equal(here.status, 404);
    assert.match(here.body, new RegExp(`it is at ${address}api"`));
    for (const more of [
      { remote_address: "192.0.2.7" },
      { headers: { ...navigation, "X-Forwarded-For": "192.0.2.7" } },
      { headers: { ...navigation, Host: "www.example.org" } },
    ]) {
      const response = await host.inject({ path: "/admin/", headers: navigation, ...more });
      assert.deepEqual([response.status, response.headers.location], [404, undefined]);
      assert.doesNotMatch(response.body, /Admin API|localhost/);
    }
  });

  test("leave /admin to an app at the root where they do not redirect, and redirect nobody without a dashboard port", async (t) => {
    const root = (module: Module) =>
      module.provides("http", { default_path: "/", route: { "GET /*": (_event, rest) => `mine ${rest}` } });
    const { host } = await serving(t, {}, root);
    const far = await host.inject({ path: "/admin/x", headers: navigation, remote_address: "192.0.2.7" });
    assert.equal(far.body, "mine admin/x");
    const { host: without } = await serving(t, { admin_port: 0 });
    const response = await without.inject({ path: "/admin/", headers: navigation });
    assert.deepEqual([response.status, response.headers.location], [404, undefined]);
  });

  test("serve the apps, and the port of the dashboard serves none of them", async (t) => {
    const { host } = await serving(t, {}, (module) => module.provides("http", { route: { "GET /": "mine" } }));
    assert.equal((await host.inject("/mine/")).body, "mine");
    assert.equal((await host.ask("/mine/")).status, 404);
    assert.equal((await host.ask({ path: "/", headers: navigation })).headers.location, "/admin/");
  });
});

describe("the port of the dashboard", () => {
  test("runs no middleware of apps, so a guard that redirects all apps to HTTPS does not redirect the dashboard", async (t) => {
    const seen: string[] = [];
    const { host, address } = await serving(
      t,
      { modules_enabled: ["http_admin", "http_guard"], http_guard: { "*": { https: true } } },
      (module) =>
        module.provides("http-middleware", {
          middleware: async ({ path }: { path: string }, next: () => Promise<void>) => {
            seen.push(path);
            await next();
          },
        }),
    );
    assert.equal((await host.ask("/admin/api/status")).status, 200);
    assert.deepEqual(seen, []);
    const led = await host.inject({ path: "/admin/", headers: navigation, secure: true });
    assert.equal(led.headers.location, address);
  });

  test("can have its own name behind a proxy that speaks HTTPS, where a token signs in", async (t) => {
    const { host } = await serving(t);
    const proxied = { Host: "admin.example.org", "X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https" };
    const page = { "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty" };
    assert.equal((await host.ask({ path: "/admin/", headers: { ...navigation, ...proxied } })).status, 200);
    const sent = { ...proxied, ...page, Origin: "https://admin.example.org", "X-Modhost-Admin": "1" };
    const signIn = { ...sent, Authorization: `Bearer ${token}` };
    const signed = await host.ask({ path: "/admin/session", method: "POST", headers: signIn });
    assert.equal(signed.status, 200, signed.body);
    const [line = ""] = signed.headers["set-cookie"] ?? [];
    assert.match(line, /; Secure$/);
    const session = { ...proxied, ...page, Cookie: line.split(";")[0] ?? "" };
    const headers = { ...session, "X-Modhost-Page": signed.json<{ page_key: string }>().page_key };
    assert.equal((await host.ask({ path: "/admin/api/status", headers })).status, 200);
    assert.equal((await host.ask({ path: "/admin/api/status", headers: proxied })).status, 403);
    const plain = { ...signIn, "X-Forwarded-Proto": "http", Origin: "http://admin.example.org" };
    assert.equal((await host.ask({ path: "/admin/session", method: "POST", headers: plain })).status, 403);
  });

  test("moves when the configuration of the running server changes, and the redirect follows", async (t) => {
    const first = await freePort();
    const second = await freePort();
    const common = { modules_enabled: ["http", "http_admin"], ...loopback, admin_local: "any_user" };
    await using server = await reconfigured({ ...common, admin_port: first });
    const open = () => server.host.listening().flatMap(({ service, port }) => (service === "admin" ? [port] : []));
    const led = async () => {
      const headers = { Accept: "text/html", Host: "localhost" };
      const response = await fetch(`http://127.0.0.1:${server.port()}/admin/`, { headers, redirect: "manual" });
      return response.headers.get("location");
    };
    assert.deepEqual([open(), await led()], [[first], `http://localhost:${first}/admin/`]);
    const plan = await server.apply({ ...common, admin_port: second });
    assert.deepEqual(
      plan.ports.map(({ action, service, port }) => `${action} ${service} ${port}`),
      [`open admin ${second}`, `close admin ${first}`],
    );
    assert.deepEqual([open(), await led()], [[second], `http://localhost:${second}/admin/`]);
    await server.apply({ ...common, admin_port: 0 });
    assert.deepEqual([open(), await led()], [[], null]);
    const blocker = createServer().listen(0, "127.0.0.1");
    t.after(() => blocker.close());
    await once(blocker, "listening");
    const taken = (blocker.address() as { port: number }).port;
    await assert.rejects(server.apply({ ...common, admin_port: taken }), /taken by another program.*admin_port/);
    assert.deepEqual(open(), []);
  });

  test("fails the start if it is configured and in use, and causes a warning if the default is in use", async (t) => {
    const blocker = createServer().listen(0, "127.0.0.1");
    t.after(() => blocker.close());
    await once(blocker, "listening");
    const { port } = blocker.address() as { port: number };
    const folder = await folderOf(t, {});
    const written = {
      modules_enabled: ["http_admin"],
      http_ports: [0],
      http_interfaces: ["127.0.0.1"],
      https_ports: [],
      data_path: folder,
      admin_port: port,
      ...loopback,
    };
    const made = (isDefault: boolean) =>
      createHost({ config: new Config({ written, isDefault, directory: folder }), log: false });
    const set = made(false);
    await assert.rejects(set.start(), { code: "PORT_TAKEN", message: /the option admin_port to another port/ });
    await set.stop();
    const unset = made(true);
    t.after(() => unset.stop());
    await unset.start();
    const { status, value } = await callAt<{ warnings: string[] }>(`${folder}/admin.sock`, "GET", "/status");
    assert.equal(status, 200, "commands use the admin socket");
    assert.match(
      value.warnings.join(),
      /The dashboard and the Admin API have no port\. Port \d+ .* is taken .* admin_port .* MODHOST_ADMIN_PORT=\d+\. Commands/,
    );
    assert.equal(unset.listening().filter(({ service }) => service === "admin").length, 0);
    blocker.close();
    await once(blocker, "close");
    await unset.reload("http_admin");
    assert.equal(
      unset.listening().filter(({ service }) => service === "admin").length,
      1,
      "a reload tries the port again",
    );
    assert.deepEqual(unset.modules().find(({ name }) => name === "http_admin")?.note, undefined);
  });
});

test("the HTTPS port of the dashboard serves a certificate even if apps have no HTTPS, and needs a token", async (t) => {
  const port = await freePort();
  const config = { admin_https_port: port, admin_https_interfaces: ["127.0.0.1"], admin_tokens: [token] };
  const host = await adminHost(t, { config: { ...config, https_ports: [], admin_local: "any_user" } });
  const status = (headers: Record<string, string>) =>
    new Promise((resolve, reject) => {
      const to = { host: "127.0.0.1", port, path: "/admin/api/status", agent: false, rejectUnauthorized: false };
      request({ ...to, headers }, (response) => resolve(response.resume().statusCode))
        .on("error", reject)
        .end();
    });
  assert.equal(await status({}), 403);
  assert.equal(await status({ Authorization: `Bearer ${token}` }), 200);
  const led = await host.inject({ path: "/admin/", headers: navigation });
  assert.equal(led.headers.location, `https://localhost:${port}/admin/`);
});
