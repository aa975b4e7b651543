import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { write } from "../module/support.ts";
import { ran } from "./called.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-routes-"));
  const all =
    "...Object.fromEntries(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [method + ' /all/*', 'x']))";
  const routes = `{ GET: "x", "GET /two": "x", "HEAD /two": "x", ${all} }`;
  await write(folder, {
    "mod_shop.js": `export default (module) => { module.depends("http"); module.provides("http", { route: ${routes} }); };`,
  });
});
after(() => rm(folder, { recursive: true }));

const routes = (...words: string[]) =>
  ran(folder, ["routes", ...words], { env: { MODHOST_HTTP_PORTS: "0", MODHOST_ADMIN_PORT: "0" } });

describe("the list of routes", () => {
  test("has one line for routes that differ only in their method, unless --all is given", async () => {
    const { stdout } = await routes("mod_shop.js", "--no-json");
    assert.match(stdout, /^5 methods +\/shop\/all\/\* /m);
    assert.match(stdout, /^GET,HEAD +\/shop\/two /m);
    assert.match(stdout, /^\d+ routes in \d+ lines: --all lists each\.$/m);
    const all = (await routes("mod_shop.js", "--no-json", "--all")).stdout;
    assert.match(all, /^PATCH +\/shop\/all\/\* /m);
    assert.doesNotMatch(all, /--all/);
  });

  test("contains every route in JSON", async () => {
    const listed = JSON.parse((await routes("mod_shop.js", "--json")).stdout) as { path: string }[];
    assert.equal(listed.filter(({ path }) => path === "/shop/all/*").length, 5);
  });

  test("has two lines for the RPC API", async () => {
    await write(folder, { "rpc.yaml": "modules_enabled: [http, http_api]\n" });
    const { stdout } = await routes("rpc.yaml", "--no-json");
    assert.equal(stdout.split("\n").filter((line) => / \/api\//.test(line)).length, 2);
  });

  for (const words of [
    ["--explain", "GET", "/shop/two", "mod_shop.js"],
    ["mod_shop.js", "--explain", "GET", "/shop/two"],
    ["--explain", "GET /shop/two", "mod_shop.js"],
    ["--explain=GET", "/shop/two", "mod_shop.js"],
    ["--explain", "/shop/two", "mod_shop.js"],
  ]) {
    test(`${words.join(" ")} explains a request to the module of the file`, async () => {
      const { code, stdout } = await routes(...words, "--json");
      assert.equal(code, 0);
      assert.deepEqual(
        JSON.parse(stdout).candidates.map(({ app }: { app: string }) => app),
        ["shop"],
      );
    });
  }

  test("a file with an absolute path may stand before the request to explain", async () => {
    const { stdout } = await routes(join(folder, "mod_shop.js"), "--explain", "GET", "/shop", "--json");
    assert.equal(JSON.parse(stdout).path, "/shop");
  });

  for (const path of ["/shop/tow", "/shpo/two"]) {
    test(`${path}, which has no route, is explained with similar routes`, async () => {
      const { stdout } = await routes("mod_shop.js", "--explain", "GET", path, "--no-json");
      assert.match(stdout, /No route matches/);
      assert.match(stdout, /^Similar routes:\n(?: .*\n)* {2}GET,HEAD \/shop\/two$/m);
    });
  }

  test("a path that is similar to none is explained without similar routes", async () => {
    const { stdout } = await routes("mod_shop.js", "--explain", "GET", "/quite/elsewhere", "--no-json");
    assert.match(stdout, /No route matches/);
    assert.doesNotMatch(stdout, /near/);
    const { near } = JSON.parse((await routes("mod_shop.js", "--explain", "GET", "/quite/x", "--json")).stdout);
    assert.deepEqual(near, []);
  });

  test("a misspelt file name causes a suggestion of the right one", async () => {
    assert.match(
      (await routes("./mod_shpo.js")).stderr,
      /no file or folder \.\/mod_shpo\.js: did you mean \.\/mod_shop\.js\?/,
    );
    assert.match((await routes("none/mod_shop.js")).stderr, /no file or folder none\/mod_shop\.js$/m);
  });
});
