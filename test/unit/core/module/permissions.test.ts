/** Permissions that modules declare, in their package.json or their file. */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { type Files, pluginHost, stateOf } from "./support.ts";

const plain = "export default () => undefined;";
const manifest = (permissions: unknown) => JSON.stringify({ type: "module", modhost: { permissions } });

async function declared(t: TestContext, files: Files, config: Record<string, unknown> = {}) {
  const running = await pluginHost(t, files, { modules_enabled: [], ...config });
  const { status, note, permissions = [] } = stateOf(running, "shop") ?? {};
  return { status, note, texts: permissions.filter((each) => each.is_declared).map(({ text }) => text) };
}

describe("a module declares permissions", () => {
  test("in its package.json, or as an export, in any form of module", async (t) => {
    const cases: readonly Files[] = [
      { "mod_shop/package.json": manifest({ env: "SHOP_KEY" }), "mod_shop/index.js": plain },
      { "shop/package.json": manifest({ env: "SHOP_KEY" }), "shop/mod_shop.js": plain },
      { "mod_shop.js": `export const permissions = { env: ["SHOP_KEY"] };\n${plain}` },
      { "mod_shop.js": `export default { load() {}, permissions: { env: ["SHOP_KEY"] } };` },
      { "mod_shop.cjs": `module.exports = () => {};\nmodule.exports.permissions = { env: ["SHOP_KEY"] };` },
      { "mod_shop.js": `export const isolated = true;\nexport const permissions = { env: ["SHOP_KEY"] };\n${plain}` },
      {
        "mod_shop/package.json": manifest({ env: "SHOP_KEY" }),
        "mod_shop/index.js": `export const isolated = true;\n${plain}`,
      },
    ];
    for (const files of cases) {
      const { status, texts } = await declared(t, files);
      assert.deepEqual(
        [status, texts],
        ["loaded", ["may see the environment variable SHOP_KEY"]],
        JSON.stringify(files),
      );
    }
  });

  test("and is refused with the reason if the declaration is wrong, wherever it runs", async (t) => {
    const cases: readonly [permissions: unknown, reason: RegExp][] = [
      [[], /its permissions is \[\], but it must be an object/],
      [{ conect: ["a.test:1"] }, /its permissions\.conect is .*, but the fields are .*: is connect meant\?/],
      [{ connect: ["a.test"] }, /its permissions\.connect is "a\.test", but it must be a host and a port/],
      [{ env: [1] }, /its permissions\.env is \[1\], but it must be a list of texts/],
      [{ call: { node: 1 } }, /its permissions\.call\.node is 1, but it must be true or a list of functions/],
    ];
    for (const [permissions, reason] of cases) {
      const text = `export const permissions = ${JSON.stringify(permissions)};\n${plain}`;
      for (const files of [
        { "mod_shop.js": text },
        { "mod_shop.js": `export const isolated = true;\n${text}` },
        { "mod_shop/package.json": manifest(permissions), "mod_shop/index.js": plain },
      ]) {
        const { status, note = "" } = await declared(t, files);
        assert.equal(status, "failed");
        assert.match(note, /is not a module: /);
        assert.match(note, reason);
      }
    }
  });

  test("in one place only", async (t) => {
    const files = {
      "mod_shop/package.json": manifest({ env: ["A"] }),
      "mod_shop/index.js": `export const permissions = { env: ["B"] };\n${plain}`,
    };
    const { note = "" } = await declared(t, files);
    assert.match(note, /both its package\.json and its file declare permissions: leave one of them out/);
  });
});
