/** `modhost add`, `remove`, `rollback` and `verify`, with and without a running server. */
import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { createHost, type Host } from "#core/index.ts";
import type { Change } from "#core/types.ts";
import type { Offer } from "#modules/mod_packages/packages.ts";
import { ran } from "#test/unit/core/cli/called.ts";

const permissions = { write: ["data"], connect: ["api.example.org:443"] };

/** A folder with a configuration, and next to it a module of a stranger. */
async function site(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-add-"));
  const hosts: Host[] = [];
  t.after(async () => {
    for (const host of hosts) await host.stop({ timeout: 2 });
    await rm(folder, { recursive: true, force: true });
  });
  await mkdir(join(folder, "etc"));
  const config = { modules_enabled: ["http", "http_admin", "packages"], data_path: "./data", https_ports: [] };
  await writeFile(join(folder, "etc/modhost.config.json"), JSON.stringify({ ...config, http_ports: [0] }));
  const publish = async (
    version: string,
    code = `() => ${JSON.stringify(version)}`,
    declared: object = permissions,
  ) => {
    await mkdir(join(folder, "shop"), { recursive: true });
    const modhost = { entry: "./index.js", permissions: declared };
    const manifest = { name: "modhost-mod-shop", version, license: "MIT", type: "module", modhost };
    await writeFile(join(folder, "shop/package.json"), JSON.stringify(manifest));
    await writeFile(
      join(folder, "shop/index.js"),
      `export const depends = ["http"];
       export default (module) => module.provides("http", { route: { GET: ${code} } });`,
    );
  };
  await publish("1.0.0");
  const run = (...words: string[]) => ran(folder, words, { cwd: "etc" });
  const start = async () => {
    const configPath = join(folder, "etc/modhost.config.json");
    const host = createHost({ configPath, env: {}, log: false });
    hosts.push(host);
    await host.start();
    const port = host.listening().find(({ service }) => service === "http")?.port;
    return async () => {
      const response = await fetch(`http://127.0.0.1:${port}/shop`);
      return response.ok ? await response.text() : response.status;
    };
  };
  return { folder, publish, run, start };
}

const changeOf = ({ stdout }: { stdout: string }) => JSON.parse(stdout) as Change;

describe("modhost add", { timeout: 120_000 }, () => {
  test("describes a module and installs nothing with --dry-run", async (t) => {
    const { run, folder } = await site(t);
    const { code, stdout } = await run("add", "../shop", "--dry-run", "--no-json");
    assert.equal(code, 0);
    assert.match(stdout, /^shop 1\.0\.0\n {2}package +modhost-mod-shop 1\.0\.0, MIT\n/);
    assert.match(stdout, /permissions:\n {2}may write its own data folder\n {2}may connect to api\.example\.org:443\n/);
    assert.ok(!(await readdir(join(folder, "etc"))).includes("modules.lock"));
    const offer = JSON.parse((await run("add", "../shop", "--dry-run", "--json")).stdout) as Offer;
    assert.deepEqual([offer.module, offer.version, offer.permissions], ["shop", "1.0.0", permissions]);
  });

  test("needs --grant where nobody can be asked, and says the value that grants what is declared", async (t) => {
    const { run, folder } = await site(t);
    const { code, stderr } = await run("add", "../shop");
    assert.equal(code, 2);
    assert.match(stderr, /--grant write:data,connect:api\.example\.org:443 for all that it declares/);
    assert.ok(!(await readdir(join(folder, "etc"))).includes("modules.lock"));
  });

  test("installs a module before the first start, with exactly the permissions of --grant", async (t) => {
    const { run, start, folder } = await site(t);
    const added = await run("add", "../shop", "--grant", "write:data");
    assert.equal(added.code, 0, added.stderr);
    assert.match(added.stderr, /the next start loads it/);
    const { modules } = JSON.parse(await readFile(join(folder, "etc/modules.lock"), "utf8"));
    assert.deepEqual([modules.shop.grant, modules.shop.run], [{ write: ["data"] }, "sandboxed"]);
    assert.equal(await (await start())(), "1.0.0");
  });

  test("installs, replaces, rolls back and removes a module of a running server", async (t) => {
    const { run, start, publish } = await site(t);
    const get = await start();
    assert.equal(await get(), 404);
    const added = changeOf(await run("add", "../shop", "--grant", "none"));
    assert.deepEqual([added.what, added.by, added.result], ["install shop 1.0.0", "admin socket", "done"]);
    assert.equal(await get(), "1.0.0");
    await publish("1.1.0");
    assert.equal(changeOf(await run("add", "../shop", "--grant", "none")).result, "done");
    assert.equal(await get(), "1.1.0");
    const back = changeOf(await run("rollback", "shop"));
    assert.deepEqual(back.plan?.installed, [{ module: "shop", from: "1.1.0", to: "1.0.0" }]);
    assert.equal(await get(), "1.0.0");
    assert.equal(changeOf(await run("remove", "shop")).result, "done");
    assert.equal(await get(), 404);
    const again = await run("remove", "shop");
    assert.equal(again.code, 1);
    assert.match(again.stderr, /shop is not installed from a package/);
  });

  test("a version that cannot be loaded leaves the old one, and modules.lock as it was", async (t) => {
    const { run, start, publish, folder } = await site(t);
    const get = await start();
    await run("add", "../shop", "--grant", "none");
    const lock = await readFile(join(folder, "etc/modules.lock"), "utf8");
    await publish("2.0.0", "this is no code");
    const failed = await run("add", "../shop", "--grant", "none");
    assert.deepEqual([failed.code, changeOf(failed).result], [1, "failed"]);
    assert.equal(await get(), "1.0.0");
    assert.equal(await readFile(join(folder, "etc/modules.lock"), "utf8"), lock);
    await publish("2.0.0");
    assert.equal(changeOf(await run("add", "../shop", "--grant", "none")).result, "done");
    assert.equal(await get(), "2.0.0");
  });

  test("a changed file is found by verify, and add --locked fetches the module again", async (t) => {
    const { run, folder } = await site(t);
    await run("add", "../shop", "--grant", "none");
    assert.equal((await run("verify")).code, 0);
    const store = join(folder, "etc/data/packages/shop");
    const [tree = ""] = await readdir(store);
    await appendFile(join(store, tree, "node_modules/modhost-mod-shop/index.js"), "// changed");
    const found = await run("verify", "--no-json");
    assert.equal(found.code, 1);
    assert.match(found.stdout, /^shop: node_modules\/modhost-mod-shop\/index\.js is changed\n/);
    assert.match((await run("add", "--locked", "--no-json")).stdout, /^Fetched: shop/);
    assert.equal((await run("verify")).code, 0);
  });

  const wrong: readonly (readonly [string, RegExp])[] = [
    ["everything", /--grant has everything: write none, declared, or permissions such as/],
    ["{", /--grant is not JSON/],
    ["connect:nowhere", /--grant is wrong: its permissions\.connect is "nowhere", but/],
    ["fly:moon", /--grant is wrong: its permissions\.fly is/],
  ];
  for (const [grant, message] of wrong) {
    test(`--grant ${grant} is refused with what would be right`, async (t) => {
      const { run } = await site(t);
      const { code, stderr } = await run("add", "../shop", "--grant", grant);
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }
});
