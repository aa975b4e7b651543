import assert from "node:assert/strict";
import { appendFile, chmod, mkdir, readdir, readFile, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  folderOf,
  installedModule,
  installModule,
  pruneStore,
  removeModule,
  restoreModules,
  rollBackModule,
  verifyModules,
} from "#modules/mod_packages/engine.ts";
import { PackageSite } from "./support.ts";

const consent = { grant: { env: ["SHOP_KEY"] }, run: "sandboxed" } as const;

/** Opens a site on which the versions are published and installed, in this order. */
async function openWith(...versions: string[]): Promise<PackageSite> {
  const site = await PackageSite.open();
  for (const version of versions) {
    await site.publish({ version, files: { "version.txt": version } });
    await installModule(await site.fetch(), consent, site.settings);
  }
  return site;
}

const treesOf = async (site: PackageSite) => (await readdir(join(site.settings.store, "shop"))).sort();

/** The folder of the installed package. */
async function packageFolder(site: PackageSite): Promise<string> {
  const folder = folderOf("shop", await installedModule("shop", site.settings), site.settings);
  return join(folder, "node_modules/modhost-mod-shop");
}

const installedText = async (site: PackageSite) => readFile(join(await packageFolder(site), "version.txt"), "utf8");

describe("installed modules", () => {
  test("an installation is written to the lock file, with what was consented to", async () => {
    await using site = await openWith("1.0.0");
    const { modules, version } = JSON.parse(await readFile(site.settings.lockFile, "utf8"));
    assert.equal(version, 1);
    assert.equal(modules.shop.source, "npm:modhost-mod-shop");
    assert.deepEqual(modules.shop.grant, { env: ["SHOP_KEY"] });
    assert.equal(modules.shop.run, "sandboxed");
    assert.equal(modules.shop.publisher, "alice");
    assert.equal(modules.shop.previous, undefined);
    assert.equal(await installedText(site), "1.0.0");
  });

  test("an update makes the installed version the previous one, and drops the one before", async () => {
    await using site = await openWith("1.0.0", "1.1.0", "1.2.0");
    const { version, previous } = await installedModule("shop", site.settings);
    assert.equal(version, "1.2.0");
    assert.equal(previous?.version, "1.1.0");
    assert.ok(!Object.hasOwn(previous, "previous"));
  });

  test("a version that is installed again has the same tree, and the previous version stays", async () => {
    await using site = await openWith("1.0.0", "1.1.0");
    const before = await installedModule("shop", site.settings);
    await installModule(await site.fetch(), consent, site.settings);
    const after = await installedModule("shop", site.settings);
    assert.equal(after.tree, before.tree);
    assert.equal(after.previous?.version, "1.0.0");
    assert.equal((await treesOf(site)).length, 2);
  });

  test("a rollback exchanges both versions, and a second one undoes it", async () => {
    await using site = await openWith("1.0.0", "1.1.0");
    await rollBackModule("shop", site.settings);
    assert.equal(await installedText(site), "1.0.0");
    assert.equal((await installedModule("shop", site.settings)).previous?.version, "1.1.0");
    await rollBackModule("shop", site.settings);
    assert.equal(await installedText(site), "1.1.0");
  });

  test("a version that was rolled back can be installed again", async () => {
    await using site = await openWith("1.0.0", "1.1.0");
    await rollBackModule("shop", site.settings);
    await installModule(await site.fetch(), consent, site.settings);
    assert.equal(await installedText(site), "1.1.0");
    assert.equal((await installedModule("shop", site.settings)).previous?.version, "1.0.0");
  });

  test("a rollback works after the package has left the registry", async () => {
    await using site = await openWith("1.0.0", "1.1.0");
    site.registry.documents.clear();
    site.registry.bodies.clear();
    await rollBackModule("shop", site.settings);
    assert.equal(await installedText(site), "1.0.0");
  });

  test("a rollback whose files cannot be had leaves the current version", async () => {
    await using site = await openWith("1.0.0", "1.1.0");
    const { previous } = await installedModule("shop", site.settings);
    await rm(folderOf("shop", previous as NonNullable<typeof previous>, site.settings), { recursive: true });
    site.registry.bodies.clear();
    await assert.rejects(rollBackModule("shop", site.settings), { code: "FAILED" });
    assert.equal(await installedText(site), "1.1.0");
  });

  test("a rollback without a previous version is refused", async () => {
    await using site = await openWith("1.0.0");
    await assert.rejects(rollBackModule("shop", site.settings), {
      code: "NO_PREVIOUS",
      message: "shop has no previous version to return to",
    });
  });

  test("a module that is not installed is refused", async () => {
    await using site = await openWith("1.0.0");
    for (const work of [rollBackModule, removeModule, installedModule])
      await assert.rejects(work("constructor", site.settings), {
        code: "MODULE_UNKNOWN",
        message: `constructor is not installed from a package: ${site.settings.lockFile} has no entry for it`,
      });
  });

  test("a module may have the name of a property of every object", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({
      name: "modhost-mod-constructor",
      manifest: { modhost: { entry: "./index.js" } },
      files: { "index.js": "" },
    });
    await installModule(await site.fetch("constructor"), consent, site.settings);
    assert.equal((await installedModule("constructor", site.settings)).previous, undefined);
  });

  test("a fetched module whose files were pruned before the consent is refused", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    const fetched = await site.fetch();
    assert.deepEqual(await pruneStore(site.settings), [{ module: "shop", tree: fetched.version.tree }]);
    await assert.rejects(installModule(fetched, consent, site.settings), {
      code: "TREE_MISSING",
      message: /^The files of shop 1\.0\.0 are missing in .*: install it again$/,
    });
    await assert.rejects(readFile(site.settings.lockFile));
  });

  test("a pruned store has the current and the previous versions", async () => {
    await using site = await openWith("1.0.0", "1.1.0", "1.2.0");
    assert.equal((await treesOf(site)).length, 3);
    const { tree, previous } = await installedModule("shop", site.settings);
    assert.equal((await pruneStore(site.settings)).length, 1);
    assert.deepEqual(await treesOf(site), [tree, previous?.tree].sort());
    await removeModule("shop", site.settings);
    await pruneStore(site.settings);
    assert.deepEqual(await site.left(), []);
  });
});

describe("verification of the store", () => {
  test("each changed, missing and added file is found", async () => {
    await using site = await openWith("1.0.0");
    assert.deepEqual(await verifyModules(site.settings), { shop: [] });
    const folder = await packageFolder(site);
    await appendFile(join(folder, "index.js"), "evil()");
    await rm(join(folder, "version.txt"));
    await mkdir(join(folder, "node_modules/x"), { recursive: true });
    await writeFile(join(folder, "node_modules/x/index.js"), "evil()");
    await symlink("/etc/passwd", join(folder, "link"));
    await chmod(join(folder, "package.json"), 0o755);
    const at = "node_modules/modhost-mod-shop";
    assert.deepEqual(await verifyModules(site.settings), {
      shop: [
        { path: `${at}/index.js`, fault: "changed" },
        { path: `${at}/link`, fault: "added" },
        { path: `${at}/node_modules/x/index.js`, fault: "added" },
        { path: `${at}/package.json`, fault: "changed" },
        { path: `${at}/version.txt`, fault: "missing" },
      ],
    });
  });

  test("a file that was replaced by a link to an equal file is found", async () => {
    await using site = await PackageSite.open();
    await site.publish({ entries: [{ name: "package/run.sh", mode: 0o755, body: "x" }] });
    await installModule(await site.fetch(), consent, site.settings);
    const file = join(await packageFolder(site), "run.sh");
    const copy = join(site.folder, "run.sh");
    await rename(file, copy);
    await symlink(copy, file);
    assert.deepEqual(await verifyModules(site.settings), {
      shop: [{ path: "node_modules/modhost-mod-shop/run.sh", fault: "changed" }],
    });
  });

  test("a changed list of files is found", async () => {
    await using site = await openWith("1.0.0");
    const folder = folderOf("shop", await installedModule("shop", site.settings), site.settings);
    await appendFile(join(folder, "files"), "x\n");
    assert.deepEqual(await verifyModules(site.settings), { shop: [{ path: "files", fault: "changed" }] });
    await rm(folder, { recursive: true });
    assert.deepEqual(await verifyModules(site.settings), { shop: [{ path: "files", fault: "missing" }] });
  });

  test("the lock file makes the same tree on another machine", async () => {
    await using site = await openWith("1.0.0");
    await site.registry.publish({ name: "pad" });
    await site.publish({ version: "1.1.0", manifest: { dependencies: { pad: "^1", old: "npm:pad@1" } } });
    await installModule(await site.fetch(), consent, site.settings);
    // A newer version of the dependency does not matter.
    await site.registry.publish({ name: "pad", version: "1.0.1" });
    const before = await site.left();
    await rm(site.settings.store, { recursive: true });
    assert.deepEqual(await restoreModules(site.settings), ["shop"]);
    assert.deepEqual(await verifyModules(site.settings), { shop: [] });
    assert.deepEqual(await restoreModules(site.settings), []);
    assert.deepEqual(
      await site.left(),
      before.filter((path) => !path.startsWith(`shop/${oldTree(before, site)}`)),
    );
  });

  test("damaged files are replaced", async () => {
    await using site = await openWith("1.0.0");
    await writeFile(join(await packageFolder(site), "version.txt"), "evil");
    await restoreModules(site.settings);
    assert.equal(await installedText(site), "1.0.0");
    await writeFile(join(await packageFolder(site), "version.txt"), "evil");
    await site.fetch();
    assert.equal(await installedText(site), "1.0.0");
  });

  test("a registry that serves another archive by now cannot restore a module", async () => {
    await using site = await openWith("1.0.0");
    await rm(site.settings.store, { recursive: true });
    await site.publish({ files: { "evil.js": "" } });
    await assert.rejects(restoreModules(site.settings), { code: "INTEGRITY" });
    assert.deepEqual(await site.left(), []);
  });

  test("a lock file with another tree cannot restore a module", async () => {
    await using site = await openWith("1.0.0");
    const lock = JSON.parse(await readFile(site.settings.lockFile, "utf8"));
    lock.modules.shop.tree = "0".repeat(64);
    await writeFile(site.settings.lockFile, JSON.stringify(lock));
    await rm(site.settings.store, { recursive: true });
    await assert.rejects(restoreModules(site.settings), {
      code: "TREE_OTHER",
      message: "The files of shop are not those that modules.lock states: add the module again to accept them",
    });
    assert.deepEqual(await site.left(), []);
  });
});

describe("changes of the store", () => {
  test("leftovers of a killed process are removed", async () => {
    await using site = await openWith("1.0.0");
    const { store } = site.settings;
    await mkdir(join(store, ".staging/tree/node_modules/x"), { recursive: true });
    // No process has this number.
    await writeFile(join(store, ".lock"), JSON.stringify({ id: "x", machine: hostname(), pid: 2 ** 30 }));
    await site.fetch();
    assert.deepEqual((await readdir(store)).sort(), ["shop"]);
  });

  test("one of two changes at once is refused", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    const results = await Promise.allSettled([site.fetch(), site.fetch()]);
    const refused = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    assert.equal(refused.length, 1);
    assert.equal(refused[0].code, "STORE_BUSY");
    assert.match(
      refused[0].message,
      new RegExp(`is being changed by process ${process.pid} of .*: wait until it ends$`),
    );
    await site.fetch();
  });

  test("a lock of an earlier process with the same number is abandoned, as in a container", async () => {
    await using site = await openWith("1.0.0");
    const path = join(site.settings.store, ".lock");
    await writeFile(path, JSON.stringify({ id: "x", machine: hostname(), pid: process.pid }));
    await site.fetch();
    assert.deepEqual((await readdir(site.settings.store)).sort(), ["shop"]);
  });

  test("a lock of a running process without sign of life is abandoned", async () => {
    await using site = await openWith("1.0.0");
    const path = join(site.settings.store, ".lock");
    await writeFile(path, JSON.stringify({ id: "x", machine: hostname(), pid: process.ppid }));
    await assert.rejects(site.fetch(), { code: "STORE_BUSY" });
    const old = new Date(Date.now() - 120_000);
    await utimes(path, old, old);
    await site.fetch();
  });

  test("a lock of another machine without sign of life is abandoned", async () => {
    await using site = await openWith("1.0.0");
    const path = join(site.settings.store, ".lock");
    await writeFile(path, JSON.stringify({ id: "x", machine: "another.example", pid: 1 }));
    await assert.rejects(site.fetch(), { code: "STORE_BUSY" });
    const old = new Date(Date.now() - 120_000);
    await utimes(path, old, old);
    await site.fetch();
  });

  test("an unreadable lock is taken over", async () => {
    await using site = await openWith("1.0.0");
    await writeFile(join(site.settings.store, ".lock"), "");
    await site.fetch();
    assert.deepEqual((await readdir(site.settings.store)).sort(), ["shop"]);
  });
});

/** The tree of version 1.0.0, which is not restored because it is not current. */
function oldTree(paths: readonly string[], site: PackageSite): string {
  void site;
  const found = paths.find((path) => path.endsWith("version.txt"));
  return found?.split("/")[1] ?? "";
}
