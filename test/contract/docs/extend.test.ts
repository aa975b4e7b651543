/**
 * Loads the module of the guide "Extend modhost" from its folder, and tests what it contributes to
 * each part of modhost.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import type { Module, ServerTokens } from "#core/types.ts";
import { ran } from "#test/unit/core/cli/called.ts";
import { typeErrors } from "./guides/support.ts";

const visits = fileURLToPath(new URL("../../../docs/guides/extend/visits/", import.meta.url));
const modules_enabled = ["http_admin", "http_errors", "http_health", "http_openmetrics", "backup", visits];

let host: TestHost;
/** The folder in which commands find the server. */
let site: string;
let tokens: ServerTokens;

before(async () => {
  const shop = {
    name: "mod_shop",
    load(module: Module) {
      ({ tokens } = module.server);
      module.depends("http");
      const page = { headers: { content_type: "text/html; charset=utf-8" }, body: "<h1>Shop</h1>" };
      module.provides("http", { route: { "GET /": () => page, "GET /list": "a, b", "GET /no": 404 } });
    },
  };
  host = await createTestHost({ config: { modules_enabled, admin_local: "any_user" }, modules: [shop] });
  site = await mkdtemp(join(tmpdir(), "modhost-extend-"));
  const config = { modules_enabled, data_path: host.folder };
  await writeFile(join(site, "modhost.config.json"), JSON.stringify(config));
  for (const path of ["/shop/", "/shop/", "/shop/list", "/shop/no", "/visits/"]) await (await host.fetch(path)).text();
});
after(async () => {
  await host.stop();
  await rm(site, { recursive: true });
});

const run = (...words: string[]) => ran(site, ["--no-json", ...words]);
const text = async (path: string) => (await host.fetch(path)).text();

describe("the module of the guide", () => {
  test("has no type errors, with types from its comments", () => {
    const files = ["index.js", "counts.js", "cli/visits.js", "cli/doctor.js"].map((name) => join(visits, name));
    assert.deepEqual(typeErrors(files), []);
  });

  test("counts pages, and shows the counts at its own address", async () => {
    assert.match(await text("/visits/"), /have shown 2 pages/);
  });

  test("contributes a command, which is in --help and in the completion script of a shell", async () => {
    assert.deepEqual(await run("visits"), { code: 0, stdout: "APP   VISITS\nshop  2\n", stderr: "" });
    const { stdout, stderr } = await run("--help");
    assert.match(stdout, /^ {2}visits +A command of the module visits: /m);
    assert.equal(stderr, "");
    assert.match((await run("completion", "bash")).stdout, /--reset/);
    const wrong = await run("visits", "--app", "shop");
    assert.deepEqual([wrong.code, wrong.stderr], [2, "modhost: --app goes with --reset\nTry modhost --help.\n"]);
  });

  test("contributes a token scope", async () => {
    const get = (secret?: string) =>
      host.fetch("/visits/counts", secret === undefined ? {} : { headers: { authorization: `Bearer ${secret}` } });
    assert.equal((await get()).status, 401);
    const { secret: other } = await tokens.create({ name: "other", scopes: ["app:shop"] });
    assert.equal((await get(other)).status, 403);
    const { secret } = await tokens.create({ name: "screen", scopes: ["visits:read"] });
    const response = await get(secret);
    assert.deepEqual([response.status, await response.json()], [200, [{ app: "shop", visits: 2 }]]);
    await assert.rejects(tokens.create({ name: "wrong", scopes: ["visits:write"] }), { code: "TOKEN_INVALID" });
  });

  test("contributes an entry to the start page and to the output of run, which replaces its routes", async () => {
    const entry = host.host.startPage().find(({ module }) => module === "visits");
    assert.deepEqual(entry?.urls, [host.url("/visits/").replace("127.0.0.1", "localhost")]);
    const { body } = await host.inject({ path: "/", headers: { accept: "text/html" } });
    assert.match(body, /<a href="http:\/\/localhost:\d+\/visits\/">See how many pages were shown<\/a>/);
    assert.doesNotMatch(body, /<span>visits<\/span>/);
  });

  test("contributes operations of the Admin API, which OpenAPI describes", async () => {
    const { body } = await host.inject({ service: "admin", path: "/admin/api/openapi.json" });
    assert.match(body, /"operationId":"visits_reset"/);
  });

  test("contributes a metric", async () => {
    assert.match(await text("/metrics"), /^visits_pages_total\{app="shop"\} 2$/m);
  });

  test("contributes its counts to backups, as they are when the backup begins", async () => {
    const backup = await run("backup", "backups");
    assert.equal(backup.code, 0, backup.stderr);
    const restored = await run("restore", "backups", "--to", "restored");
    assert.equal(restored.code, 0, restored.stderr);
    const file = join(site, "restored", "data", "visits", "counts.json");
    assert.deepEqual(JSON.parse(await readFile(file, "utf8")), { shop: 2 });
  });

  test("contributes a check to the doctor", async () => {
    await host.reload("visits");
    await mkdir(join(host.folder, "visits"), { recursive: true });
    const file = join(host.folder, "visits", "counts.json");
    await writeFile(file, "[");
    const { stdout } = await run("doctor");
    assert.match(stdout, /^problem +visits +The visits in .*counts\.json cannot be read\n +→ restore the file/m);
    await rm(file);
    assert.match((await run("doctor")).stdout, /^ok +visits$/m);
  });

  test("contributes to health if its counts cannot be saved, and restarts from 0 on request", async () => {
    assert.equal((await host.fetch("/health/ready")).status, 200);
    await rm(join(host.folder, "visits"), { recursive: true, force: true });
    await writeFile(join(host.folder, "visits"), "in the way");
    assert.deepEqual((await run("visits", "--reset", "--app", "shop")).stdout, "No visits yet.\n");
    assert.equal((await host.fetch("/health/ready")).status, 503);
    await rm(join(host.folder, "visits"));
    await run("visits", "--reset");
    assert.equal((await host.fetch("/health/ready")).status, 200);
  });

  // A page of the dashboard counts as a visit, so this test comes after those that count.
  test("contributes a page of the dashboard", async () => {
    const headers = { accept: "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    const { body } = await host.inject({ service: "admin", path: "/admin/", headers });
    const [path] = /\/admin\/files\/\w+\/of-visits\/main\.js/.exec(body) ?? [];
    assert.ok(path !== undefined, body);
    const script = await host.inject({ service: "admin", path });
    assert.match(script.body, /addSection\(/);
  });
});
