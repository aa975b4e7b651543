/** Tests the entries that modules add to the start page. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import type { Module } from "#core/types.ts";

const entry = (name: string, urls: () => readonly string[]) => ({
  name: `mod_${name}`,
  load: (module: Module) => module.provides("start-page", { name, help: `Open ${name}`, urls }),
});

test("a module adds an entry with the URLs that it has now, and takes it away when it is unloaded", async () => {
  let urls = ["http://a.test/", "http://a.test/"];
  await using host = await createTestHost({ listen: false, modules: [entry("shop", () => urls)] });
  const shop = { name: "shop", help: "Open shop", module: "shop", host: "*" };
  assert.deepEqual(host.host.startPage(), [{ ...shop, urls: ["http://a.test/"] }]);
  urls = [];
  assert.deepEqual(host.host.startPage(), [{ ...shop, urls: [] }]);
  await host.unload("shop");
  assert.deepEqual(host.host.startPage(), []);
});

test("an entry whose URLs fail has none, and its module logs why", async () => {
  const broken = entry("broken", () => {
    throw new Error("no luck");
  });
  await using host = await createTestHost({
    listen: false,
    modules: [broken, entry("shop", () => ["http://a.test/"])],
  });
  assert.deepEqual(
    host.host.startPage().map(({ urls }) => urls),
    [[], ["http://a.test/"]],
  );
  const [logged] = host.logged("error");
  assert.equal(logged?.module, "broken");
  assert.match(logged?.msg ?? "", /^The URLs of its start-page item broken are unknown: .*no luck/);
});
