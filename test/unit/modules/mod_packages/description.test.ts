import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  changesBetween,
  describeModule,
  installModule,
  type ModuleFetchOptions,
} from "#modules/mod_packages/engine.ts";
import type { Publication } from "#test/support/npm_registry.ts";
import { PackageSite } from "./support.ts";

const DAY = 24 * 3600_000;
const published = "2060-05-01T00:00:00.000Z";

describe("the description of a module", () => {
  test("it says who publishes what, and what the module may do", async () => {
    await using site = await PackageSite.open();
    site.set({ now: () => Date.parse(published) + 12 * DAY });
    await site.registry.publish({ name: "pad", manifest: { license: "ISC" } });
    await site.registry.publish({ name: "left", manifest: { license: { type: "ISC" } } });
    const modhost = {
      entry: "./index.js",
      host: "^1.2.0",
      permissions: { connect: ["api.example.org:443"], write: ["data"] },
      options: { shop_currency: { type: "string", default: "EUR", describe: "The currency of prices." } },
    };
    const dependencies = { pad: "*", left: "*" };
    await site.publish({ time: published, manifest: { modhost, dependencies, engines: { node: ">=24" } } });
    const { bytes, ...description } = describeModule(await site.fetch(), site.settings);
    // The size of the files, without the blocks of the archives.
    assert.ok(bytes > 200 && bytes < 1500, `${bytes} bytes`);
    assert.deepEqual(description, {
      module: "shop",
      package: "modhost-mod-shop",
      version: "1.0.0",
      publisher: "alice",
      published,
      age: "12 days",
      resolved: `${site.registry.url}modhost-mod-shop/-/modhost-mod-shop-1.0.0.tgz`,
      verified: ["integrity", "signature"],
      files: 4,
      license: "MIT",
      dependencies: 2,
      licenses: { ISC: 2 },
      permissions: ["may write its own data folder", "may connect to api.example.org:443"],
      options: [{ name: "shop_currency", type: "string", default: "EUR", describe: "The currency of prices." }],
      host: "^1.2.0",
      node: ">=24",
      warnings: [],
    });
  });

  test("texts of the package cannot control a terminal", async () => {
    await using site = await PackageSite.open();
    const modhost = { entry: "./index.js", options: { x: { type: "string", describe: "a\u001b[2Jb" } } };
    await site.publish({ publisher: "al\u202eice", manifest: { license: "M\u0007IT", modhost } });
    const description = JSON.stringify(describeModule(await site.fetch(), site.settings));
    assert.doesNotMatch(description, /\\u001b|\\u0007|\u202e/);
    assert.match(description, /M\\\\x07IT/);
  });

  test("describing a module runs none of its code", async () => {
    await using site = await PackageSite.open();
    await site.publish({ files: { "index.js": "throw new Error('it was run');" } });
    describeModule(await site.fetch(), site.settings);
  });
});

describe("the difference between two versions", () => {
  /**
   * Returns the changes from one publication to the next, as texts; those with consent have a `!`.
   */
  async function changes(from: Partial<Publication>, to: Partial<Publication>, options: ModuleFetchOptions = {}) {
    await using site = await PackageSite.open();
    for (const name of ["pad", "left"]) await site.registry.publish({ name });
    await site.publish({ version: "1.0.0", ...from });
    const installed = await installModule(await site.fetch(), { grant: {}, run: "sandboxed" }, site.settings);
    await site.publish({ version: "1.1.0", ...to });
    const fetched = await site.fetch("shop", options);
    const found = changesBetween(installed, fetched.version);
    return found.map(({ text, needs_consent }) => `${needs_consent ? "! " : ""}${text}`);
  }
  const withPermissions = (permissions: object) => ({ manifest: { modhost: { entry: "./index.js", permissions } } });

  test("a version that changes nothing else has none", async () => {
    assert.deepEqual(await changes({}, {}), []);
  });

  test("new permissions need consent, and dropped ones are listed", async () => {
    const from = withPermissions({ env: ["SHOP_KEY"], listen: [8080] });
    const to = withPermissions({ env: ["SHOP_KEY", "OTHER_KEY"] });
    assert.deepEqual(await changes(from, to), [
      "! New permission: may see the environment variable OTHER_KEY",
      "Permission dropped: may listen on port 8080",
    ]);
  });

  test("another publisher needs consent", async () => {
    assert.deepEqual(await changes({}, { publisher: "mallory" }), ["! Other publisher: alice becomes mallory"]);
  });

  test("another licence needs consent", async () => {
    const to = { manifest: { license: "UNLICENSED" } };
    assert.deepEqual(await changes({}, to), ["! Other licence: MIT becomes UNLICENSED"]);
  });

  test("new dependencies need consent, and dropped ones are listed", async () => {
    const from = { manifest: { dependencies: { left: "*" } } };
    const to = { manifest: { dependencies: { pad: "*" } } };
    assert.deepEqual(await changes(from, to), ["! New dependency: pad", "Dependency dropped: left"]);
  });

  test("a lower version needs consent", async () => {
    assert.deepEqual(await changes({ version: "2.0.0" }, {}, { allowLower: true }), [
      "! Lower version: 2.0.0 becomes 1.1.0",
    ]);
  });

  test("a signature that is missing by now needs consent", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    const installed = (await site.fetch()).version;
    site.registry.keys = [];
    await site.publish({ version: "1.1.0" });
    const fetched = (await site.fetch("shop@^1.1")).version;
    assert.deepEqual(changesBetween(installed, fetched), [
      { kind: "verification", needs_consent: true, text: "No signature any longer: that of 1.0.0 was verified" },
      {
        kind: "source",
        needs_consent: false,
        text: "Other source: npm:modhost-mod-shop becomes npm:modhost-mod-shop@^1.1",
      },
    ]);
  });
});
