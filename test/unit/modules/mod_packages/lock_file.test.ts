import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { before, describe, test } from "node:test";
import { installModule, readLockFile } from "#modules/mod_packages/engine.ts";
import { lockFileText, writeLockFile } from "#modules/mod_packages/lockfile/lock_file.ts";
import { PackageSite } from "./support.ts";

// biome-ignore lint/suspicious/noExplicitAny: the tests make lock files that the types exclude.
type AnyLock = any;

/** A lock file with a module that has every field. */
let written = "";

before(async () => {
  await using site = await PackageSite.open();
  await site.registry.publish({ name: "pad" });
  for (const version of ["1.0.0", "1.1.0"]) {
    await site.publish({ version, manifest: { dependencies: { pad: "1", old: "npm:pad@1" } } });
    await installModule(await site.fetch(), { grant: {}, run: "sandboxed" }, site.settings);
  }
  written = await readFile(site.settings.lockFile, "utf8");
});

/** Opens a site with that lock file. */
async function openLocked(): Promise<PackageSite> {
  const site = await PackageSite.open();
  await writeFile(site.settings.lockFile, written);
  return site;
}

describe("modules.lock", () => {
  test("a written lock file is read again, and the same modules make the same text", async () => {
    await using site = await openLocked();
    const { lockFile } = site.settings;
    const text = await readFile(lockFile, "utf8");
    const modules = await readLockFile(lockFile);
    assert.equal(lockFileText(modules), text);
    const reversed = JSON.parse(text, (_, value) =>
      value === null || typeof value !== "object" || Array.isArray(value)
        ? value
        : Object.fromEntries(Object.entries(value).reverse()),
    );
    assert.equal(lockFileText(reversed.modules), text);
  });

  test("the text is readable, and sorted by name", async () => {
    await using site = await openLocked();
    const { shop } = await readLockFile(site.settings.lockFile);
    assert.ok(shop !== undefined);
    await writeLockFile(site.settings.lockFile, lockFileText({ shop, cart: shop }));
    const text = await readFile(site.settings.lockFile, "utf8");
    assert.ok(
      text.startsWith('{\n  "version": 1,\n  "modules": {\n    "cart": {\n      "source": "npm:modhost-mod-shop",\n'),
    );
    assert.ok(text.endsWith("}\n"));
    assert.ok(text.indexOf('"cart"') < text.indexOf('"shop"'));
  });

  test("a missing file has no modules", async () => {
    await using site = await PackageSite.open();
    assert.deepEqual({ ...(await readLockFile(site.settings.lockFile)) }, {});
  });

  for (const [title, change, problem] of [
    ["no version", (lock: AnyLock) => delete lock.version, "its version must be 1"],
    ["an unknown field", (lock: AnyLock) => (lock.x = 1), "it has the unknown field x"],
    ["no modules", (lock: AnyLock) => delete lock.modules, "its field modules must be an object"],
    [
      "a module whose name is a path",
      (lock: AnyLock) => (lock.modules["../x"] = lock.modules.shop),
      "../x cannot be the name of a module",
    ],
    [
      "a module that is no object",
      (lock: AnyLock) => (lock.modules.shop = 1),
      "modules.shop has the unknown field entry",
    ],
    [
      "an unknown field of a module",
      (lock: AnyLock) => (lock.modules.shop.x = 1),
      "modules.shop has the unknown field x",
    ],
    ["a missing field", (lock: AnyLock) => delete lock.modules.shop.version, "modules.shop lacks the field version"],
    [
      "a wrong field",
      (lock: AnyLock) => (lock.modules.shop.run = "wild"),
      'modules.shop.run is "wild", but must be one of trusted, isolated, sandboxed',
    ],
    [
      "a tree that is a path",
      (lock: AnyLock) => (lock.modules.shop.tree = "../../etc"),
      'modules.shop.tree is "../../etc", but must be a hash of 64 hexadecimal digits',
    ],
    [
      "a package that is a path",
      (lock: AnyLock) => (lock.modules.shop.package = "../x"),
      'modules.shop.package is "../x", but must be the name of a package',
    ],
    [
      "a checksum of another kind",
      (lock: AnyLock) => (lock.modules.shop.integrity = "sha1-x"),
      'modules.shop.integrity is "sha1-x", but must be a checksum that begins with sha512-',
    ],
    [
      "a wrong grant",
      (lock: AnyLock) => (lock.modules.shop.grant = { fly: true }),
      'modules.shop.grant is {"fly":true}, but must be',
    ],
    [
      "a wrong time",
      (lock: AnyLock) => (lock.modules.shop.installed = "yesterday"),
      'modules.shop.installed is "yesterday", but must be a time',
    ],
    [
      "a wrong fact",
      (lock: AnyLock) => (lock.modules.shop.verified = ["magic"]),
      'modules.shop.verified is ["magic"], but must be a list of integrity',
    ],
    [
      "a wrong field of the previous version",
      (lock: AnyLock) => (lock.modules.shop.previous.version = 1),
      "modules.shop.previous.version is 1, but must be a text",
    ],
    [
      "a previous version of the previous one",
      (lock: AnyLock) => (lock.modules.shop.previous.previous = {}),
      "modules.shop.previous has the unknown field previous",
    ],
    [
      "a package whose path leaves the tree",
      (lock: AnyLock) => (lock.modules.shop.packages["node_modules/../../x"] = {}),
      "modules.shop.packages has node_modules/../../x, which is not the path of a package",
    ],
    [
      "a wrong field of a package",
      (lock: AnyLock) => (lock.modules.shop.packages["node_modules/modhost-mod-shop"].resolved = "ftp://x"),
      'modules.shop.packages["node_modules/modhost-mod-shop"].resolved is "ftp://x", but must be a URL',
    ],
    [
      "a module without its own package",
      (lock: AnyLock) => delete lock.modules.shop.packages["node_modules/modhost-mod-shop"],
      "modules.shop.packages lacks the package of the module, node_modules/modhost-mod-shop",
    ],
  ] as const) {
    test(`a lock file with ${title} is refused`, async () => {
      await using site = await openLocked();
      const { lockFile } = site.settings;
      const lock = JSON.parse(await readFile(lockFile, "utf8"));
      change(lock);
      await writeFile(lockFile, JSON.stringify(lock));
      await assert.rejects(readLockFile(lockFile), (error: Error & { code: string }) => {
        assert.equal(error.code, "LOCK_INVALID");
        assert.ok(error.message.startsWith(`${lockFile} is not valid: ${problem}`), error.message);
        return true;
      });
    });
  }

  test("a lock file that is a list is refused", async () => {
    await using site = await PackageSite.open();
    const { lockFile } = site.settings;
    await writeFile(lockFile, "[]");
    await assert.rejects(readLockFile(lockFile), {
      message: `${lockFile} is not valid: it must be an object`,
    });
  });

  test("a lock file of a later version of modhost is refused", async () => {
    await using site = await PackageSite.open();
    const { lockFile } = site.settings;
    await writeFile(lockFile, '{ "version": 2, "modules": [] }');
    await assert.rejects(readLockFile(lockFile), {
      code: "LOCK_NEWER",
      message: `${lockFile} was written by a later version of modhost (format 2): update this one`,
    });
  });

  test("a lock file with the conflicts of a merge is refused as such", async () => {
    await using site = await PackageSite.open();
    const { lockFile } = site.settings;
    await writeFile(lockFile, '{\n<<<<<<< HEAD\n  "version": 1\n=======\n>>>>>>> x\n}');
    await assert.rejects(readLockFile(lockFile), { message: /: resolve the conflicts of the merge$/ });
  });
});
