/** Permissions of modules in the commands check and modules. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { ModuleState } from "#core/types.ts";
import { type Files, write } from "../module/support.ts";
import { ran } from "./called.ts";

let root: string;
let made = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "modhost-permissions-"));
});
after(() => rm(root, { recursive: true }));

const env = { MODHOST_HTTP_PORTS: "0", MODHOST_HTTPS_PORTS: "" };
const shop = `export const isolated = true;
export const depends = ["catalog"];
export const permissions = { call: { catalog: ["find"] }, env: ["SHOP_KEY"], connect: ["api.example.org:443"] };
export default () => undefined;`;
const files: Files = { "mod_shop.js": shop, "mod_catalog.js": "export default () => ({ find() {} });" };

async function run(words: readonly string[], modules: string, more: Files = files) {
  const folder = join(root, String((made += 1)));
  const config = `plugin_paths: [.]\nmodules_enabled: [http, ${more === files ? "shop, " : ""}catalog]\n${modules}\n`;
  await write(folder, { "package.json": `{ "type": "module" }`, "modhost.config.yaml": config, ...more });
  return ran(folder, words, { env });
}

describe("check", () => {
  const check = (modules: string) => run(["check", "--no-json"], modules);

  test("warns of what is declared and not granted, with the line that grants it, and of the opposite", async () => {
    const { code, stdout } = await check("modules: { shop: { grant: { call: { catalog: true }, env: [OTHER] } } }");
    assert.equal(code, 0);
    const lines = stdout.split("\n").filter((line) => line.startsWith("warning"));
    assert.deepEqual(
      lines.map((line) => line.replace(/^warning +/, "")),
      [
        'shop declares that it may see the environment variable SHOP_KEY, which is not granted: add modules: { shop: { grant: { env: ["SHOP_KEY"] } } }',
        "modules.shop.grant: shop may see the environment variable OTHER, which it does not declare",
        "modules.shop.grant: shop may call every function of catalog, which it does not declare",
      ],
    );
  });

  test("shows all missing grants of a module in one line, also of one that is not loaded without them", async () => {
    const { code, stdout } = await check("modules: { shop: { grant: {} } }");
    assert.equal(code, 1);
    assert.match(stdout, /problem +shop: The module shop may not call catalog\.find: to allow it, add /);
    assert.ok(
      stdout.includes(
        'to grant shop all of these that it declares, add modules: { shop: { grant: { env: ["SHOP_KEY"], call: { catalog: ["find"] } } } }',
      ),
      stdout,
    );
  });

  test("names the key that somebody has added a second time, as the lines to add invite to", async () => {
    const { code, stdout } = await check("modules: { shop: { grant: {} } }\nmodules: { shop: { audit: true } }");
    assert.equal(code, 1);
    assert.match(stdout, /line 4, column 1: .*: "modules" occurs twice in the map, so merge the two/);
  });

  test("warns of grants that name what does not exist", async () => {
    const { stdout } = await check(
      "modules: { shop: { grant: { call: { catalog: [find], nobody: true }, options: [http_ports, no_such] } } }",
    );
    assert.match(stdout, /modules\.shop\.grant: call names nobody, which is not loaded/);
    assert.match(stdout, /modules\.shop\.grant: there is no option no_such/);
    assert.doesNotMatch(stdout, /there is no option http_ports|names catalog/);
  });

  test("warns of settings without effect", async () => {
    const { stdout } = await check(
      "modules: { catalog: { grant: {}, audit: true, namespaces: off, spare: true }, shop: { audit: true, grant: { call: { catalog: [find] }, connect: ['api.example.org:443'], read: [/no/such] }, limits: { open_files: 100 }, namespaces: required, spare: true }, nobody: { limits: { open_files: 100 } } }",
    );
    for (const wanted of [
      /modules\.nobody: the module nobody is not loaded/,
      /modules\.catalog\.grant has no effect: catalog runs trusted, and may do everything/,
      /modules\.catalog\.audit has no effect/,
      /modules\.catalog\.namespaces has no effect/,
      /modules\.catalog\.spare has no effect/,
      /modules\.shop\.audit: nothing is refused to shop/,
      /modules\.shop\.grant\.read has no effect: shop runs isolated, and not sandboxed/,
      /modules\.shop\.grant\.connect has no effect/,
      /modules\.shop\.namespaces has no effect/,
      /modules\.shop\.spare has no effect/,
      /modules\.shop\.grant: there is no \/no\/such/,
    ]) {
      assert.match(stdout, wanted);
    }
  });

  test("says nothing about permissions if nothing restricts the module", async () => {
    const { stdout } = await check("");
    assert.match(stdout, /^The configuration is valid\.$/m);
  });

  test("reports wrong settings with their paths, and what a grant must not contain", async () => {
    const { code, stdout } = await check("modules: { shop: { run: isolatd, grant: { connect: [example.org] } } }");
    assert.equal(code, 1);
    assert.match(stdout, /modhost\.config\.yaml: modules\.shop\.run is "isolatd", but it must be one of trusted/);
    assert.match(stdout, /modules\.shop\.grant\.connect is "example\.org", but it must be a host and a port/);
    const refused = await check("modules: { shop: { run: sandboxed, grant: { read: [/proc] } } }");
    assert.equal(refused.code, 1);
    assert.match(refused.stdout, /modules\.shop\.grant\.read is "\/proc", but it contains facts about all processes/);
  });
});

describe("modules", () => {
  const granted = "modules: { shop: { grant: { call: { catalog: [find] }, connect: ['api.example.org:443'] } } }";

  test("shows where each module runs, and with --permissions what it declares, has and uses", async () => {
    const { stdout } = await run(["modules", "--no-json"], granted);
    assert.match(stdout, /^MODULE +HOST +STATUS +RUNS/m);
    assert.match(stdout, /^shop +\* +loaded +isolated/m);
    assert.match(stdout, /^catalog +\* +loaded +trusted/m);
    const listed = await run(["modules", "--permissions", "--no-json"], granted);
    const lines = listed.stdout.split("\n").map((line) => line.replaceAll(/ {2,}/g, " | ").trim());
    assert.deepEqual(
      lines.filter((line) => line !== ""),
      [
        "MODULE | RUNS | PERMISSION | DECLARED | GRANTED | USED | DENIED",
        "shop | isolated | may connect to api.example.org:443 | yes | yes, not enforced | 0 | 0",
        'shop | isolated | may see the environment variable SHOP_KEY | yes | no | 0 | 0 | add modules: { shop: { grant: { env: ["SHOP_KEY"] } } }',
        "shop | isolated | may call catalog.find | yes | yes | 0 | 0",
      ],
    );
  });

  test("shows with an audit what to grant, which it is there to find out", async () => {
    const audited = "modules: { shop: { audit: true, grant: { call: { catalog: [find] } } } }";
    const { stdout } = await run(["modules", "--permissions", "--no-json"], audited);
    assert.match(
      stdout,
      /SHOP_KEY .* no, not enforced .* add modules: \{ shop: \{ grant: \{ env: \["SHOP_KEY"\] \} \} \}/,
    );
  });

  test("says that no module has permissions, and lists all facts as JSON", async () => {
    const { stdout } = await run(["modules", "--permissions", "--no-json"], "", {
      "mod_catalog.js": files["mod_catalog.js"]!,
    });
    assert.equal(stdout, "No module declares, has or has used a permission.\n");
    const json = await run(["modules", "--json"], granted);
    const state = (JSON.parse(json.stdout) as ModuleState[]).find(({ name }) => name === "shop");
    assert.deepEqual(
      state?.permissions?.map(({ what, is_granted }) => [what, is_granted]),
      [
        ["api.example.org:443", true],
        ["SHOP_KEY", false],
        ["catalog.find", true],
      ],
    );
  });
});
