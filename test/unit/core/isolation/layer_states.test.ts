/** Tests the layers of its sandbox that the state of a module lists. */
import assert from "node:assert/strict";
import { chmodSync } from "node:fs";
import { describe, test } from "node:test";
import { layerStates } from "#core/isolation/layer_states.ts";
import { type SandboxLayer, sandboxLayers, sandboxUnavailable } from "#core/sandbox/index.ts";
import { pluginHost, stateOf } from "../module/support.ts";

const layer = (name: string, works = true): SandboxLayer => ({
  name,
  works,
  detail: `${name} ${works ? "works" : "is missing"}.`,
  ...(!works && { remedy: `Get ${name}.` }),
  isRequired: false,
});

describe("the layers of a sandbox", () => {
  test("are listed without Node.js itself; one that is missing here has the reason and the remedy", () => {
    const layers = [layer("node"), layer("landlock"), layer("namespaces", false), layer("user", false)];
    assert.deepEqual(layerStates({ name: "shop", active: ["landlock"], barrier: undefined }, layers), [
      { name: "landlock", is_active: true, text: "landlock works." },
      { name: "namespaces", is_active: false, text: "namespaces is missing.", remedy: "Get namespaces." },
      { name: "user", is_active: false, text: "user is missing.", remedy: "Get user." },
    ]);
  });

  test("say that the configuration switches namespaces off", () => {
    const [namespaces] = layerStates({ name: "shop", active: [], barrier: undefined }, [layer("namespaces")]);
    assert.equal(namespaces?.text, "The configuration switches it off.");
    assert.equal(namespaces.remedy, "Set modules.shop.namespaces to auto.");
  });

  test("say which path keeps a module from having a user of its own", () => {
    const userOf = (path: string, isAboveData: boolean) =>
      layerStates({ name: "shop", active: [], barrier: { path, isAboveData } }, [layer("user")])[0];
    const text = (path: string) => `It runs as the user of the server: another user could not reach ${path}.`;
    assert.deepEqual(userOf("/srv/data", true), {
      name: "user",
      is_active: false,
      text: text("/srv/data"),
      remedy: "Get the layer namespaces, which hides that folder.",
    });
    assert.equal(userOf("/root", false)?.text, text("/root"));
    assert.match(userOf("/root", false)?.remedy ?? "", /^Let other users reach \/root: chmod/);
  });
});

const works = (name: string) => sandboxLayers().some((each) => each.name === name && each.works);
const shop = "export default () => undefined;";

describe("a sandboxed module", { skip: sandboxUnavailable() ?? false, timeout: 120_000 }, () => {
  const layersOf = (host: Parameters<typeof stateOf>[0], name: string) =>
    new Map(stateOf(host, name)?.sandbox?.map((each) => [each.name, each]));

  test("has its layers in its state, and one that is audited has none", async (t) => {
    const modules = { shop: { run: "sandboxed" }, wiki: { run: "sandboxed", audit: true }, forum: { run: "isolated" } };
    const files = { "mod_shop.js": shop, "mod_wiki.js": shop, "mod_forum.js": shop };
    const host = await pluginHost(t, files, { modules });
    const layers = layersOf(host, "shop");
    assert.deepEqual([...layers.keys()].sort(), [
      "cgroup",
      "landlock",
      "limits",
      "namespaces",
      "node-permission",
      "seccomp",
      "user",
    ]);
    for (const name of ["landlock", "seccomp", "limits", "node-permission"])
      assert.equal(layers.get(name)?.is_active, true);
    assert.equal(layers.get("namespaces")?.is_active, works("namespaces"));
    for (const { is_active, text, remedy } of layers.values()) {
      assert.match(text, /^[A-Z].*\.$/);
      assert.equal(remedy === undefined, is_active);
    }
    assert.deepEqual(stateOf(host, "wiki")?.sandbox, []);
    assert.equal(stateOf(host, "forum")?.sandbox, undefined);
  });

  test("says that it has no user of its own, if that user could not reach its data folder", {
    skip: !works("user") && "the server is not root here",
  }, async (t) => {
    const modules = {
      shop: { run: "sandboxed", namespaces: "off", grant: { write: ["data"] } },
      wiki: { run: "sandboxed", namespaces: "off" },
    };
    const start = async (mode: number) => {
      const host = await pluginHost(
        t,
        { "mod_shop.js": shop, "mod_wiki.js": shop },
        { modules, plugin_autoload: false },
      );
      chmodSync(host.plugins, mode);
      for (const name of ["shop", "wiki"]) await host.host.load(`${host.plugins}/mod_${name}.js`);
      return host;
    };
    const host = await start(0o755);
    const user = layersOf(host, "shop").get("user");
    assert.equal(user?.is_active, false);
    assert.match(user.text, /^It runs as the user of the server: another user could not reach .*\.$/);
    assert.ok(user.text.includes(host.folder), user.text);
    assert.equal(user.remedy, "Get the layer namespaces, which hides that folder.");
    assert.equal(layersOf(host, "wiki").get("user")?.is_active, true, "without data it has one");
    const closed = await start(0o700);
    const other = layersOf(closed, "wiki").get("user");
    assert.equal(other?.text, `It runs as the user of the server: another user could not reach ${closed.plugins}.`);
    assert.match(other.remedy ?? "", /^Let other users reach/);
  });
});
