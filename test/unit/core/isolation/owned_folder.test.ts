/** The user who owns the data folder of a sandboxed module, and the files in it. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, linkSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { giveFolder } from "#core/isolation/owned_folder.ts";
import { runModes } from "#test/support/run_modes.ts";
import { folderOf, pluginHost } from "../module/support.ts";

const skip = runModes.find(({ mode }) => mode === "sandboxed")?.skip ?? false;
const isRoot = process.getuid?.() === 0;

const shop = `import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
export const depends = ["http"];
export default (module) => module.provides("http", { route: { "POST /": () => {
  const file = join(module.data_path(), "orders");
  appendFileSync(file, "x");
  return readFileSync(file, "utf8");
} } });`;

test("a sandboxed module keeps its files with an audit, without namespaces, and afterwards", {
  skip,
  timeout: 120_000,
}, async (t) => {
  const data_path = await folderOf(t, {});
  const grant = { write: ["data"] };
  const bodies: string[] = [];
  for (const settings of [{ audit: true }, { grant }, { grant, namespaces: "off" }, { grant }]) {
    const modules = { shop: { run: "sandboxed", ...settings } };
    const host = await pluginHost(t, { "mod_shop.js": shop }, { data_path, modules, plugin_autoload: false });
    // A user of the module's own must be able to read its file.
    chmodSync(host.plugins, 0o755);
    await host.host.load(`${host.plugins}/mod_shop.js`);
    bodies.push((await host.inject({ method: "POST", path: "/shop/" })).body);
    await host.stop();
  }
  assert.deepEqual(bodies, ["x", "xx", "xxx", "xxxx"]);
});

describe("giveFolder", { skip: !isRoot && "only root can change owners" }, () => {
  const ownerOf = (path: string) => statSync(path).uid;
  const owner = { uid: 54_321, gid: 54_321 };

  test("changes the owner of the folder and of everything in it", async (t) => {
    const folder = await folderOf(t, { "a.json": "", "below/b.json": "" });
    giveFolder(folder, owner);
    for (const path of ["", "a.json", "below", "below/b.json"])
      assert.equal(ownerOf(join(folder, path)), owner.uid, path);
  });

  test("changes no file outside that a link in the folder leads to", async (t) => {
    const folder = await folderOf(t, { "data/a.json": "", "outside/c.json": "", "outside/d.json": "" });
    symlinkSync(join(folder, "outside/c.json"), join(folder, "data/c.json"));
    symlinkSync(join(folder, "outside"), join(folder, "data/folder"));
    linkSync(join(folder, "outside/d.json"), join(folder, "data/d.json"));
    giveFolder(join(folder, "data"), owner);
    assert.equal(ownerOf(join(folder, "data/a.json")), owner.uid);
    for (const path of ["outside", "outside/c.json", "outside/d.json"])
      assert.equal(ownerOf(join(folder, path)), 0, path);
  });

  test("does not search a folder that the user owns already", async (t) => {
    const folder = await folderOf(t, { "a.json": "" });
    chownSync(folder, owner.uid, owner.gid);
    giveFolder(folder, owner);
    assert.equal(ownerOf(join(folder, "a.json")), 0);
  });
});
