/** Modules under test in a sandbox or a worker, and other hosts that the test plays. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { sandboxUnavailable } from "#core/sandbox/index.ts";
import { createTestHost } from "#core/testing/index.ts";
import type { Module } from "#core/types.ts";
import { freePort } from "#test/support/free_port.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

const skip = sandboxUnavailable() ?? false;
const timeout = 120_000;

/** Sends the request of the query `url`, and returns what it got, or the codes of the error. */
const shop = `import { readFileSync } from "node:fs";
export const depends = ["http"];
export const permissions = { env: ["SHOP_KEY"], connect: ["api.example.org:443"] };
const said = (error) => [error.code, error.cause?.code, error.cause?.message ?? error.message].join(" ");
export default (module) => module.provides("http", { route: {
  "GET /fetch": async ({ request }) => {
    const options = JSON.parse(new URLSearchParams(request.url.query).get("options") ?? "{}");
    try { const response = await fetch(new URLSearchParams(request.url.query).get("url"), options); return response.status + " " + await response.text(); }
    catch (error) { return said(error); }
  },
  "GET /read": ({ request }) => { try { return readFileSync(new URLSearchParams(request.url.query).get("path"), "utf8"); } catch (error) { return error.code; } },
  "GET /run": () => module.constructor === undefined ? "" : String(process.env.SHOP_KEY),
} });`;

const caller = `export const depends = ["http", "catalog"];
export default (module) => {
  const catalog = module.depends("catalog");
  module.provides("http", { route: {
    "GET /find": () => catalog.find("tea"),
    "GET /remove": () => Promise.resolve(catalog.remove("tea")).catch((error) => error.code),
  } });
};`;
function catalog(_module: Module) {
  return { find: (what: string) => `found ${what}`, remove: () => "removed" };
}

describe("a module under test in a sandbox", { skip, timeout }, () => {
  test("gets the responses of other hosts from a queue, over TLS as well, and the test sees its requests", async (t) => {
    const cwd = await folderOf(t, { "mod_shop.js": shop });
    const grant = { connect: ["api.example.org:443", "*.example.net:8080"] };
    await using host = await createTestHost({ cwd, modules: ["./mod_shop.js"], run: "sandboxed", grant });
    const get = async (url: string, options = {}) =>
      (await host.inject(`/shop/fetch?${new URLSearchParams({ url, options: JSON.stringify(options) })}`)).body;
    const api = host.outside("https://api.example.org", [
      "plain",
      Response.json({ price: 3 }, { status: 203 }),
      new Error("the connection breaks"),
    ]);
    assert.equal(await get("https://api.example.org/a?b=c"), "200 plain");
    assert.equal(await get("https://api.example.org/", { method: "POST", body: '{"x":1}' }), '203 {"price":3}');
    assert.match(await get("https://api.example.org/broken"), /ECONNRESET|other side closed/);
    assert.equal(api.pending, 0);
    const none = await get("https://api.example.org/more");
    assert.equal(
      none,
      '501 The test has no response for GET https://api.example.org:443/more: host.outside("https://api.example.org:443", [...])',
    );
    host.outside("https://api.example.org", ["again"]);
    assert.equal(await get("https://api.example.org/again"), "200 again");
    assert.deepEqual(
      api.requests.map(({ method, path }) => `${method} ${path}`),
      ["GET /a?b=c", "POST /", "GET /broken", "GET /more", "GET /again"],
    );
    assert.deepEqual(api.requests[1]?.json(), { x: 1 });
    assert.equal(api.requests[1]?.headers.host, "api.example.org");
    const plain = host.outside("http://one.example.net:8080");
    plain.respond("in plain text");
    assert.equal(await get("http://one.example.net:8080/"), "200 in plain text");
    await host.assertUsed({ connect: ["api.example.org:443", "one.example.net:8080"] });
  });

  test("is refused a host that is not granted, also after a redirect, and the test can tell", async (t) => {
    const cwd = await folderOf(t, { "mod_shop.js": shop });
    const grant = { connect: ["api.example.org:443"] };
    await using host = await createTestHost({ cwd, modules: ["./mod_shop.js"], run: "sandboxed", grant });
    const get = async (url: string) => (await host.inject(`/shop/fetch?${new URLSearchParams({ url })}`)).body;
    const evil = host.outside("https://evil.example", ["never sent"]);
    host.outside("https://api.example.org", [Response.redirect("https://evil.example/")]);
    await assert.rejects(
      host.assertDenied({ connect: ["evil.example:443"] }, { within: 0 }),
      /^AssertionError.*The module was not refused to connect to evil\.example:443\.\nUsed: nothing\.\nRefused: /,
    );
    assert.match(await get("https://api.example.org/"), /PERMISSION_DENIED/);
    await host.assertDenied({ connect: ["evil.example:443"] });
    await host.assertDenied({ connect: ["evil.example:443"] }, { module: "shop" });
    assert.equal(evil.requests.length, 0);
    assert.equal(evil.pending, 1);
    await assert.rejects(
      host.assertUsed({ connect: ["evil.example:443"] }, { within: 0 }),
      /did not connect to evil\.example:443\.\nUsed: shop: connect to api\.example\.org:443 \(1 time\)\.\nRefused: shop: connect to evil\.example:443 \(1 time\)/,
    );
    await assert.rejects(host.assertDenied({ connect: ["api.example.org:443"] }, { within: 0 }), /was not refused to/);
  });

  test("reaches no other machine, but servers of the test at their addresses", async (t) => {
    const server = createServer((_request, response) => response.end("from the test"));
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.after(() => server.close().closeAllConnections());
    const at = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const cwd = await folderOf(t, { "mod_shop.js": shop });
    const grant = { connect: [at, "api.example.org:443"] };
    await using host = await createTestHost({ cwd, modules: ["./mod_shop.js"], run: "sandboxed", grant });
    const get = async (url: string) => (await host.inject(`/shop/fetch?${new URLSearchParams({ url })}`)).body;
    assert.equal(await get(`http://${at}/`), "200 from the test");
    assert.match(
      await get("https://api.example.org/"),
      /ENETUNREACH .*Play it: host\.outside\("https:\/\/api\.example\.org", \[\.\.\.\]\)$/,
    );
  });

  test("is refused files, and the test can tell which", async (t) => {
    const cwd = await folderOf(t, { "mod_shop.js": shop, "secret.txt": "secret" });
    await using host = await createTestHost({ cwd, modules: ["./mod_shop.js"], run: "sandboxed" });
    const secret = `${cwd}/secret.txt`;
    await assert.rejects(host.assertDenied({ read: [secret] }, { within: 0 }), /was not refused to read .*secret\.txt/);
    assert.equal((await host.inject(`/shop/read?path=${secret}`)).body, "ERR_ACCESS_DENIED");
    await host.assertDenied({ read: ["./secret.txt"] });
    await assert.rejects(host.assertDenied({ write: [secret] }, { within: 0 }), /was not refused to write/);
    await assert.rejects(host.assertUsed({ read: [secret] }), /The kernel enforces permissions of the kind read/);
  });

  test("listens on granted ports alone, and the test can tell", async (t) => {
    const granted = await freePort();
    const other = await freePort();
    const server = `import { createServer } from "node:net";
const listen = (port) => createServer().on("error", () => undefined).listen(port);
export default () => { listen(${granted}); listen(${other}); };`;
    const cwd = await folderOf(t, { "mod_shop.js": server });
    const grant = { listen: [granted] };
    await using host = await createTestHost({ cwd, modules: ["./mod_shop.js"], run: "sandboxed", grant });
    await host.assertUsed(grant);
    await host.assertDenied({ listen: [other] });
    await assert.rejects(host.assertUsed({ listen: [other] }, { within: 0 }), /did not listen on port/);
  });

  test("gets the variables that are granted, and misses declared ones that are not", async (t) => {
    process.env.SHOP_KEY = "a key";
    t.after(() => delete process.env.SHOP_KEY);
    const cwd = await folderOf(t, { "mod_shop.js": shop });
    const options = { cwd, modules: ["./mod_shop.js"], run: "sandboxed" } as const;
    {
      await using host = await createTestHost(options);
      assert.equal((await host.inject("/shop/run")).body, "undefined");
      await host.assertDenied({ env: ["SHOP_KEY"] });
    }
    await using host = await createTestHost({ ...options, grant: { env: ["SHOP_KEY"] } });
    assert.equal((await host.inject("/shop/run")).body, "a key");
    await host.assertUsed({ env: ["SHOP_KEY"] });
  });

  test("is refused ports and its data folder, and the test can tell", async (t) => {
    const listener = `import { createServer } from "node:http";
export const depends = ["http"];
export default (module) => {
  const tried = () => new Promise((resolve) => createServer().once("error", ({ code }) => resolve(code)).listen(23999));
  module.provides("http", { route: { "GET /port": tried, "GET /data": () => module.data_path() } });
};`;
    const cwd = await folderOf(t, { "mod_listener.js": listener });
    await using host = await createTestHost({ cwd, modules: ["./mod_listener.js"], run: "sandboxed" });
    assert.equal((await host.inject("/listener/port")).body, "PERMISSION_DENIED");
    await host.assertDenied({ listen: [23999] });
    await assert.rejects(host.assertUsed({ listen: [23999] }, { within: 0 }), /did not listen on port 23999/);
    assert.equal((await host.inject("/listener/data")).status, 500);
    await host.assertDenied({ write: ["data"] });
  });
});

for (const run of ["isolated", "sandboxed"] as const) {
  describe(`a module under test that is ${run}`, { skip: run === "sandboxed" && skip, timeout }, () => {
    test("runs there, and calls the granted functions of a module that stays in the test", async (t) => {
      const cwd = await folderOf(t, { "mod_caller.js": caller });
      const grant = { call: { catalog: ["find"] } };
      await using host = await createTestHost({ cwd, modules: ["./mod_caller.js", catalog], run, grant });
      assert.deepEqual(
        host.host.modules().flatMap(({ name, run }) => (name === "http" ? [] : [`${name} ${run}`])),
        ["catalog trusted", `caller ${run}`],
      );
      assert.equal((await host.inject("/caller/find")).body, "found tea");
      await host.assertUsed({ call: { catalog: ["find"] } });
      assert.equal((await host.inject("/caller/remove")).body, "PERMISSION_DENIED");
      await host.assertDenied({ call: { catalog: ["remove"] } });
      await assert.rejects(
        host.assertUsed({ call: { catalog: ["remove"] } }, { within: 0 }),
        /did not call catalog\.remove/,
      );
    });
  });
}

describe("a test host", () => {
  const hello = "export default () => undefined;";

  test("says what its modules under test cannot do where they run", async (t) => {
    const cwd = await folderOf(t, { "mod_hello.js": hello });
    const modules = ["./mod_hello.js"];
    await using trusted = await createTestHost({ cwd, modules });
    assert.throws(() => trusted.outside("https://api.example.org"), /modules that are trusted .*run: "sandboxed"/);
    await assert.rejects(trusted.assertDenied({ connect: ["a.example:443"] }), {
      name: "TypeError",
      message: /kind connect \(the modules are trusted\): use createTestHost\(\{ run: "sandboxed" \}\)/,
    });
    await using isolated = await createTestHost({ cwd, modules, run: "isolated", grant: {} });
    assert.throws(() => isolated.outside("https://api.example.org"), /modules that are isolated/);
    await assert.rejects(isolated.assertDenied({ connect: ["a.example:443"] }), /\(hello is isolated\)/);
    await assert.rejects(isolated.assertDenied({ env: ["1"] }), /permissions\.env is "1", but it must be the name/);
    await assert.rejects(isolated.assertDenied({}), /Name a permission/);
  });

  test("refuses run and grant that would have no effect", async (t) => {
    const cwd = await folderOf(t, { "mod_hello.js": hello, "mod_late.js": hello });
    await assert.rejects(createTestHost({ cwd, run: "isolated" }), /run needs a module in a file/);
    await assert.rejects(createTestHost({ cwd, grant: {} }), /grant needs run/);
    await using host = await createTestHost({ cwd, modules: ["./mod_hello.js"], run: "isolated" });
    await assert.rejects(host.load("./mod_late.js"), /\.\/mod_late\.js would not be isolated/);
    await host.unload("hello");
    await host.load("./mod_hello.js");
    assert.equal(host.host.modules().find(({ name }) => name === "hello")?.run, "isolated");
  });

  test("takes the origin of an HTTP URL for another host, and no other text", { skip }, async (t) => {
    const cwd = await folderOf(t, { "mod_hello.js": hello });
    await using host = await createTestHost({ cwd, modules: ["./mod_hello.js"], run: "sandboxed" });
    for (const text of ["api.example.org", "ftp://api.example.org", "https://api.example.org/path", "https://a.org/?b"])
      assert.throws(() => host.outside(text), { name: "TypeError", message: /host\.outside takes an origin/ });
    host.outside("https://api.example.org");
    assert.throws(() => host.outside("http://api.example.org:443"), /already plays https:\/\/api\.example\.org:443/);
  });
});
