import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { parseModulesLock } from "#core/config/index.ts";
import { ModhostError } from "#core/index.ts";
import type { Module, Server } from "#core/types.ts";
import { reconfigured } from "../operations/reconfigured.ts";

/** The code of a module that responds with a text. */
const responding = (text: string) =>
  `export const depends = ["http"];
   export default (module) => module.provides("http", { route: { "GET /": () => ${JSON.stringify(text)} } });`;

interface Entry {
  readonly version: string;
  readonly run?: string;
  readonly grant?: object;
  readonly code: string;
}

const treeOf = (code: string) => createHash("sha256").update(code).digest("hex");

/** Returns the text of a lock file with these versions of the module http_shop. */
const lockOf = (modules: Record<string, Entry>) =>
  JSON.stringify({
    version: 1,
    modules: Object.fromEntries(
      Object.entries(modules).map(([name, { version, run = "trusted", grant = {}, code }]) => [
        name,
        { package: `modhost-mod-${name}`, version, tree: treeOf(code), run, grant },
      ]),
    ),
  });

/** Writes the package of a module where an installer does. */
async function unpack(dataPath: string, name: string, { version, code }: Entry): Promise<void> {
  const folder = join(dataPath, "packages", name, treeOf(code), "node_modules", `modhost-mod-${name}`);
  await mkdir(folder, { recursive: true });
  const manifest = { name: `modhost-mod-${name}`, version, type: "module", modhost: { entry: "./index.js" } };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  await writeFile(join(folder, "index.js"), code);
}

/** Starts a host, and a module that has its `module.server`. */
async function serverOf(t: TestContext) {
  let server: Server | undefined;
  const operator = {
    name: "operator",
    load: (module: Module) => {
      server = module.server;
    },
  };
  const running = await reconfigured({ data_path: "data" }, [operator]);
  t.after(() => running[Symbol.asyncDispose]());
  const save = async (text: string, what?: string) => {
    const { installed } = server as Server;
    const { etag = "" } = await installed.file();
    return installed.save(text, etag, { by: "a test", ...(what === undefined ? {} : { what }) });
  };
  const { installed } = server as unknown as Server;
  return { running, installed, save, dataPath: join(running.folder, "data") };
}

describe("installed modules", { timeout: 120_000 }, () => {
  const one = { version: "1.0.0", code: responding("one") };
  const two = { version: "2.0.0", code: responding("two") };

  test("modules.lock loads a module, replaces it by another version and removes it, each in one change", async (t) => {
    const { running, installed, save, dataPath } = await serverOf(t);
    assert.equal((await installed.file()).text, undefined);
    await unpack(dataPath, "http_shop", one);
    await unpack(dataPath, "http_shop", two);
    const added = await save(lockOf({ http_shop: one }), "install http_shop 1.0.0");
    assert.deepEqual([added.what, added.result, added.by], ["install http_shop 1.0.0", "done", "a test"]);
    assert.deepEqual(added.plan?.installed, [{ module: "http_shop", from: undefined, to: "1.0.0" }]);
    assert.deepEqual(
      added.plan?.modules.map(({ action, because }) => [action, because]),
      [["load", ["modules.lock"]]],
    );
    assert.equal(await running.get("/shop"), "one");
    const checked = await installed.check(lockOf({ http_shop: two }));
    assert.deepEqual(checked.plan?.installed, [{ module: "http_shop", from: "1.0.0", to: "2.0.0" }]);
    assert.equal(await running.get("/shop"), "one");
    const updated = await save(lockOf({ http_shop: two }));
    assert.deepEqual([updated.result, updated.plan?.modules[0]?.action], ["done", "exchange"]);
    assert.equal(await running.get("/shop"), "two");
    const removed = await save(lockOf({}));
    assert.deepEqual(
      removed.plan?.modules.map(({ action, because }) => [action, because]),
      [["unload", ["modules.lock"]]],
    );
    assert.match(await running.get("/shop"), /^404/);
  });

  test("a version that cannot be loaded changes nothing: the file and the old version stay", async (t) => {
    const { running, save, dataPath } = await serverOf(t);
    const broken = { version: "2.0.0", code: 'throw new Error("no database")' };
    await unpack(dataPath, "http_shop", one);
    await unpack(dataPath, "http_shop", broken);
    const lock = join(running.folder, "modules.lock");
    const first = await save(lockOf({ http_shop: broken }));
    assert.deepEqual([first.result, existsSync(lock)], ["failed", false]);
    await save(lockOf({ http_shop: one }));
    const text = await readFile(lock, "utf8");
    const second = await save(lockOf({ http_shop: broken }));
    assert.match(`${second.result}: ${second.error?.message}`, /^failed: .*no database/s);
    assert.equal(await readFile(lock, "utf8"), text);
    assert.equal(await running.get("/shop"), "one");
  });

  test("a module whose loading fails after the check of its code leaves no modules.lock", async (t) => {
    const { running, save, dataPath } = await serverOf(t);
    const failing = { version: "1.0.0", code: 'export default () => { throw new Error("no licence"); };' };
    await unpack(dataPath, "http_shop", failing);
    const change = await save(lockOf({ http_shop: failing }));
    assert.match(`${change.result}: ${change.error?.message}`, /^failed: .*no licence/s);
    assert.equal(existsSync(join(running.folder, "modules.lock")), false);
  });

  test("an edit of another text of modules.lock is refused", async (t) => {
    const { installed, save, dataPath } = await serverOf(t);
    await unpack(dataPath, "http_shop", one);
    const { etag = "" } = await installed.file();
    await save(lockOf({ http_shop: one }));
    const late = await installed.save(lockOf({}), etag);
    assert.match(`${late.error?.code} ${late.error?.message}`, /^CONFIG_CHANGED .*modules\.lock has changed since/);
  });

  test("a module runs as its entry says, with the agreed permissions, unless the configuration says otherwise", async (t) => {
    const { running, save, dataPath } = await serverOf(t);
    const code = `export const depends = ["http"]; export const permissions = { env: ["HOME"], connect: ["a.example:443"] };
      export default (module) => module.provides("http", { route: { "GET /": () => "sandboxed" } });`;
    const entry = { version: "1.0.0", run: "sandboxed", grant: { env: ["HOME"] }, code };
    await unpack(dataPath, "http_shop", entry);
    const change = await save(lockOf({ http_shop: entry }));
    assert.deepEqual([change.result, change.error?.message], ["done", undefined]);
    assert.deepEqual(change.plan?.permissions, [
      { module: "http_shop", added: ["may see the environment variable HOME"], removed: [] },
    ]);
    const stateOf = () => running.host.modules().find(({ name }) => name === "http_shop");
    assert.equal(stateOf()?.run, "sandboxed");
    const granted = () =>
      stateOf()
        ?.permissions?.filter(({ is_granted }) => is_granted)
        .map(({ what }) => what);
    assert.deepEqual(granted(), ["HOME"]);
    await running.apply({ data_path: "data", modules: { http_shop: { grant: { connect: ["a.example:443"] } } } });
    assert.deepEqual([stateOf()?.run, granted()], ["sandboxed", ["a.example:443"]]);
  });

  test("no module may be granted to write modules.lock, which says what modules may do", async (t) => {
    const { running, save, dataPath } = await serverOf(t);
    const grant = { write: [join(running.folder, "modules.lock")] };
    const greedy = { ...one, run: "sandboxed", grant };
    await unpack(dataPath, "http_shop", greedy);
    const change = await save(lockOf({ http_shop: greedy }));
    assert.match(`${change.result}: ${change.error?.message}`, /modules\.lock.*the list of installed modules/s);
  });

  test("a module that modules.lock names and whose files are missing says how to fetch them", async (t) => {
    const { save } = await serverOf(t);
    const change = await save(lockOf({ http_shop: one }));
    assert.match(
      String(change.error?.message),
      /http_shop 1\.0\.0 is in modules\.lock, but not in .*: fetch what the file names with modhost add --locked/,
    );
  });

  const faults: readonly (readonly [string, object | string, RegExp])[] = [
    ["is no JSON", "{", /The file .*modules\.lock is not valid: /],
    ["has another version", { version: 2, modules: {} }, /its version is 2, and this modhost reads version 1/],
    ["has no modules", { version: 1 }, /its field modules must be an object/],
    ["has a path as a name", { "../x": {} }, /modules\.\.\.\/x has a name that no module can have/],
    ["leaves the folder by its package", { shop: { package: "../../etc" } }, /modules\.shop\.package must be the name/],
    ["leaves the folder by its tree", { shop: { package: "a", version: "1", tree: "../.." } }, /modules\.shop\.tree/],
    [
      "names an unknown way to run",
      { shop: { package: "a", version: "1", tree: "0".repeat(64), run: "root", grant: {} } },
      /modules\.shop\.run must be one of trusted, isolated, sandboxed/,
    ],
    [
      "grants what is no permission",
      { shop: { package: "a", version: "1", tree: "0".repeat(64), run: "sandboxed", grant: { connect: ["a"] } } },
      /modules\.shop\.grant\.connect is "a", but /,
    ],
    [
      "grants with a wrong type",
      { shop: { package: "a", version: "1", tree: "0".repeat(64), run: "sandboxed", grant: { read: 5 } } },
      /modules\.shop\.grant\.read is 5, but /,
    ],
  ];
  for (const [what, content, message] of faults) {
    test(`a modules.lock that ${what} is refused with the field`, () => {
      const isLock = typeof content === "string" || "version" in content;
      const text =
        typeof content === "string" ? content : JSON.stringify(isLock ? content : { version: 1, modules: content });
      assert.throws(
        () => parseModulesLock(text, "/etc/modules.lock"),
        (error) => {
          assert.ok(ModhostError.is(error));
          assert.equal(error.code, "MODULES_LOCK_INVALID");
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }
});
