import assert from "node:assert/strict";
import { appendFile, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { installModule, parseSource, restoreModules } from "#modules/mod_packages/engine.ts";
import { packageArchive } from "#test/support/npm_registry.ts";
import { PackageSite } from "./support.ts";

const consent = { grant: {}, run: "isolated" } as const;
const manifest = { name: "modhost-mod-shop", version: "1.0.0", modhost: { entry: "./index.js" } };
const files = { "index.js": "export default function load() {}\n" };

/** Writes a folder with a module, and more files. */
async function moduleFolder(site: PackageSite, more: Record<string, string> = {}, fields = {}): Promise<string> {
  const folder = join(site.folder, "shop");
  await mkdir(folder, { recursive: true });
  const all = { "package.json": JSON.stringify({ ...manifest, ...fields }), ...files, ...more };
  for (const [path, text] of Object.entries(all)) await writeFile(join(folder, path), text);
  return folder;
}

describe("tarballs", () => {
  test("a tarball is installed with dependencies from the registry", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad" });
    const archive = await packageArchive({ manifest: { ...manifest, dependencies: { pad: "^1" } }, files });
    await writeFile(join(site.folder, "shop-1.0.0.tgz"), archive);
    const { module, version } = await site.fetch("./shop-1.0.0.tgz");
    assert.equal(module, "shop");
    assert.equal(version.source, "file:./shop-1.0.0.tgz");
    assert.deepEqual(version.verified, []);
    assert.deepEqual(Object.keys(version.packages), [
      "node_modules/modhost-mod-shop",
      "node_modules/modhost-mod-shop/node_modules/pad",
    ]);
  });

  for (const name of ["../../evil", "..", "@a/../b", ".staging", "node_modules/x", ""]) {
    test(`a tarball whose package is called ${JSON.stringify(name)} is refused`, async () => {
      await using site = await PackageSite.open();
      await writeFile(join(site.folder, "x.tgz"), await packageArchive({ manifest: { ...manifest, name }, files }));
      await site.refuses("./x.tgz", "MANIFEST_INVALID", /its name cannot be that of a package/);
    });
  }

  for (const [title, text, reason] of [
    ["no JSON", "{", "JSON"],
    ["a list", "[]", "it must be an object"],
    ["no version", '{ "name": "x" }', "its version must be a text"],
  ] as const) {
    test(`a package.json with ${title} is refused`, async () => {
      await using site = await PackageSite.open();
      await writeFile(join(site.folder, "x.tgz"), await packageArchive({ files: { "package.json": text } }));
      const { message } = await site.refuses(
        "./x.tgz",
        "MANIFEST_INVALID",
        /^The package\.json of .*x\.tgz is not valid/,
      );
      assert.ok(message.includes(reason), message);
    });
  }

  test("a tarball without package.json is refused", async () => {
    await using site = await PackageSite.open();
    const archive = await packageArchive({ entries: [{ name: "package/x", body: "x" }] });
    await writeFile(join(site.folder, "x.tgz"), archive);
    await site.refuses("./x.tgz", "MANIFEST_INVALID", /./);
  });

  test("a tarball that has changed is not restored", async () => {
    await using site = await PackageSite.open();
    const path = join(site.folder, "x.tgz");
    await writeFile(path, await packageArchive({ manifest, files }));
    await installModule(await site.fetch("./x.tgz"), consent, site.settings);
    await rm(site.settings.store, { recursive: true });
    assert.deepEqual(await restoreModules(site.settings), ["shop"]);
    await rm(site.settings.store, { recursive: true });
    await writeFile(path, await packageArchive({ manifest, files: { ...files, "evil.js": "" } }));
    await assert.rejects(restoreModules(site.settings), {
      code: "SOURCE_CHANGED",
      message: "file:./x.tgz has changed since modhost-mod-shop 1.0.0 was installed: add it again",
    });
    assert.deepEqual(await site.left(), []);
  });
});

describe("folders", () => {
  test("a folder is packed as npm does it, without running its scripts", async () => {
    await using site = await PackageSite.open();
    const touch = `touch ${join(site.folder, "ran")}`;
    const scripts = { prepare: touch, prepack: touch, postpack: touch };
    const folder = await moduleFolder(site, { ".npmrc": "x", "secret.env": "x", ".npmignore": "*.env" }, { scripts });
    await symlink("/etc/passwd", join(folder, "link"));
    await site.fetch("./shop");
    const left = await site.left();
    const names = left.filter((path) => path.includes("modhost-mod-shop/")).map((path) => path.split("/").at(-1));
    assert.deepEqual(names, ["index.js", "package.json"]);
    await assert.rejects(site.fetch("./ran"), { code: "SOURCE_MISSING" });
  });

  test("a folder with an install script is refused", async () => {
    await using site = await PackageSite.open();
    await moduleFolder(site, {}, { scripts: { install: "x" } });
    await site.refuses("./shop", "SCRIPTS", /^modhost-mod-shop 1\.0\.0 has the install script install/);
  });

  test("a folder that has changed is not restored, and can be added again", async () => {
    await using site = await PackageSite.open();
    const folder = await moduleFolder(site);
    await installModule(await site.fetch(folder), consent, site.settings);
    await rm(site.settings.store, { recursive: true });
    assert.deepEqual(await restoreModules(site.settings), ["shop"]);
    await rm(site.settings.store, { recursive: true });
    await appendFile(join(folder, "index.js"), "// changed");
    await assert.rejects(restoreModules(site.settings), {
      code: "SOURCE_CHANGED",
      message: "file:./shop has changed since modhost-mod-shop 1.0.0 was installed: add it again",
    });
    await installModule(await site.fetch(folder), consent, site.settings);
  });

  test("a folder with a lower version needs consent", async () => {
    await using site = await PackageSite.open();
    const folder = await moduleFolder(site);
    await installModule(await site.fetch(folder), consent, site.settings);
    await moduleFolder(site, {}, { version: "0.9.0" });
    await site.refuses("./shop", "VERSION_LOWER", /is lower than the installed version 1\.0\.0/);
  });
});

describe("sources", () => {
  for (const [source, code, message] of [
    ["./missing", "SOURCE_MISSING", "./missing does not exist: check the path"],
    [
      "https://example.org/x.tgz",
      "SOURCE_REFUSED",
      "https://example.org/x.tgz is a URL, which modhost does not install: publish it to a registry, or fetch it and name the folder or the tarball",
    ],
    ["git+ssh://git@example.org/x.git", "SOURCE_REFUSED", "is a git repository"],
    ["alice/shop", "SOURCE_REFUSED", "is a git repository"],
    ["x@npm:y@1", "SOURCE_UNKNOWN", "is no source of a module"],
    ["", "SOURCE_UNKNOWN", "is no source of a module"],
    ["a b", "SOURCE_UNKNOWN", "is no source of a module"],
    ["./note.txt", "SOURCE_UNKNOWN", "is no source of a module"],
  ] as const) {
    test(`${JSON.stringify(source)} is refused as a source`, async () => {
      await using site = await PackageSite.open();
      await writeFile(join(site.folder, "note.txt"), "x");
      await assert.rejects(parseSource(source, site.folder), (error: Error & { code: string }) => {
        assert.equal(error.code, code);
        assert.ok(error.message.includes(message), error.message);
        return true;
      });
    });
  }
});
