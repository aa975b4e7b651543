/**
 * The rules for the process of a module that follow from its grant, and the grants that are
 * refused.
 */
import assert from "node:assert/strict";
import { mkdir, realpath, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { configFrom } from "#core/config/index.ts";
import { loadConfig } from "#core/config/load.ts";
import { makeDataFolder } from "#core/isolation/policy.ts";
import { locatePath } from "#core/module/locate.ts";
import { rightsOf } from "#core/module/rights.ts";
import type { ModulePermissions } from "#core/types.ts";
import { packageFolder } from "#core/util/package.ts";
import { folderOf } from "../module/support.ts";

interface Server {
  readonly folder: string;
  policy(grant: ModulePermissions, more?: object, module?: string): ReturnType<typeof rightsOf>["policy"];
}

/** Makes the folder of a server: a config file, data, and a folder of modules. */
async function server(t: TestContext, options: Record<string, unknown> = {}): Promise<Server> {
  const folder = await realpath(
    await folderOf(t, {
      "etc/modhost.config.json": JSON.stringify({ data_path: "../data", plugin_paths: ["../modules"], ...options }),
      "modules/mod_shop/index.js": "",
      "modules/mod_shop/package.json": "{}",
      "modules/mod_shop/cache/x": "",
      "modules/mod_shop/cli/doctor.js": "",
      "modules/mod_other/index.js": "",
      "modules/mod_single.js": "",
      "node_modules/dep/index.js": "",
      "data/tokens.json": "{}",
      "srv/pictures/x.png": "",
      "srv/tool": "",
    }),
  );
  const file = join(folder, "etc/modhost.config.json");
  const written = await loadConfig({ path: file, cwd: folder, env: {} });
  return {
    folder,
    policy(grant, more = {}, module = "mod_shop") {
      const name = module === "mod_single.js" ? "single" : "shop";
      const entry = { run: "sandboxed", grant, ...more };
      const config = new (Object.getPrototypeOf(written).constructor)({
        written: { ...written.sources(() => true).written, modules: { [name]: entry } },
        file,
        directory: join(folder, "etc"),
      });
      config.check();
      return rightsOf(config, locatePath(join(folder, "modules", module)), "sandboxed").policy;
    },
  };
}

describe("the policy of a sandboxed module", () => {
  test("contains its own folder, its packages and what is granted, as real paths", async (t) => {
    const { folder, policy } = await server(t);
    await symlink(join(folder, "srv/pictures"), join(folder, "link"));
    Object.assign(process.env, { SHOP_KEY: "k", MODHOST_SECRET: "s" });
    t.after(() => {
      delete process.env.SHOP_KEY;
      delete process.env.MODHOST_SECRET;
    });
    const made = policy({
      read: ["./templates", join(folder, "link")],
      write: ["data", "./cache"],
      env: ["SHOP_KEY", "UNSET_KEY"],
      run: ["../../srv/tool"],
    });
    const own = join(folder, "modules/mod_shop");
    assert.deepEqual(made?.read.slice(0, 2), [own, join(folder, "node_modules")]);
    assert.deepEqual(made?.read.slice(-2), [join(own, "templates"), join(folder, "srv/pictures")]);
    assert.deepEqual(made?.write, [join(folder, "data/module_data/shop"), join(own, "cache")]);
    assert.deepEqual(made?.run, [join(folder, "srv/tool")]);
    assert.deepEqual(
      [made?.env, made?.addons, made?.namespaces, made?.isAudited],
      [{ SHOP_KEY: "k" }, false, "auto", false],
    );
  });

  test("contains only the file of a module that shares its folder with others", async (t) => {
    const { folder, policy } = await server(t);
    const made = policy({}, {}, "mod_single.js");
    assert.deepEqual(made?.read.slice(0, 2), [join(folder, "modules/mod_single.js"), join(folder, "node_modules")]);
    assert.deepEqual([made?.write, made?.run, made?.env], [[], [], {}]);
  });

  test("has the whole environment with audit, without variables that set options or change Node.js", async (t) => {
    const { policy } = await server(t);
    Object.assign(process.env, { SHOP_KEY: "k", MODHOST_SECRET: "s", NODE_EXTRA: "n" });
    t.after(() => {
      for (const name of ["SHOP_KEY", "MODHOST_SECRET", "NODE_EXTRA"]) delete process.env[name];
    });
    const made = policy({}, { audit: true });
    assert.equal(made?.isAudited, true);
    assert.deepEqual([made?.env.SHOP_KEY, made?.env.MODHOST_SECRET, made?.env.NODE_EXTRA], ["k", undefined, undefined]);
  });
});

describe("a grant is refused", () => {
  const refused = (make: () => unknown, field: string, reason: RegExp) =>
    assert.throws(make, (error: Error & { code: string; details: { name: string } }) => {
      assert.deepEqual([error.code, error.details.name], ["OPTION_INVALID", `modules.shop.${field}`]);
      assert.match(error.message, reason);
      return true;
    });

  test("if it contains files of the server or data of others, or is a part of them", async (t) => {
    const { folder, policy } = await server(t, { admin_socket: "../run/admin.sock", log_file: "../log/server.log" });
    const at = (path: string) => join(folder, path);
    const cases: readonly [path: string, reason: RegExp][] = [
      ["/", /it is the whole file system/],
      ["/proc", /it contains facts about all processes/],
      ["/proc/1/environ", /it is a part of facts about all processes/],
      ["/sys/kernel", /settings of the kernel/],
      ["/dev/shm", /devices of the machine/],
      [at("etc"), /it contains the config file/],
      [at("etc/modhost.config.json"), /it contains the config file/],
      [at("etc/modhost.config.json.2"), /it contains the config file/],
      [at("data/tokens.json"), /it contains the token store/],
      [at("data"), /it contains the token store/],
      [at("data/module_data"), /it is a part of the data of the server and of other modules/],
      [at("data/module_data/other"), /it is a part of the data/],
      [at("run"), /it contains the admin socket/],
      [at("log"), /it contains the log/],
      [at("."), /it contains the config file/],
      ["../../etc", /it contains the config file/],
    ];
    for (const [path, reason] of cases) {
      refused(() => policy({ read: [path] }), "grant.read", reason);
      refused(() => policy({ write: [path] }), "grant.write", reason);
    }
  });

  test("if a link leads to files of the server, also one that is made after the folder", async (t) => {
    const { folder, policy } = await server(t);
    await symlink(join(folder, "data"), join(folder, "srv/link"));
    refused(() => policy({ read: [join(folder, "srv/link")] }), "grant.read", /it contains the token store/);
    refused(() => policy({ read: [join(folder, "srv/link/new")] }), "grant.read", /it is a part of the data/);
    await symlink("/proc/self", join(folder, "modules/mod_shop/self"));
    refused(() => policy({ read: ["./self"] }), "grant.read", /facts about all processes/);
  });

  test("if a link in the module's own folder leads out of it, also to what does not exist yet", async (t) => {
    const { folder, policy } = await server(t);
    await symlink(join(folder, "srv"), join(folder, "modules/mod_shop/state"));
    await symlink("../../later", join(folder, "modules/mod_shop/new"));
    const link = (path: string) =>
      new RegExp(`it is a link to ${join(folder, path)}: write that path if this is meant`);
    refused(() => policy({ write: ["./state"] }), "grant.write", link("srv"));
    refused(() => policy({ read: ["./state/pictures"] }), "grant.read", link("srv/pictures"));
    refused(() => policy({ run: ["./state/tool"] }), "grant.run", link("srv/tool"));
    refused(() => policy({ write: [join(folder, "modules/mod_shop/new")] }), "grant.write", link("later"));
    assert.deepEqual(policy({ write: ["../../srv"] })?.write, [join(folder, "srv")]);
  });

  test("if code would be writable: of the module, of others, of the server, or a command", async (t) => {
    const { folder, policy } = await server(t);
    const cases: readonly [path: string, reason: RegExp][] = [
      [".", /it contains code/],
      ["./index.js", /it contains code/],
      ["./cli", /it contains code/],
      ["./package.json", /it contains code/],
      ["../mod_other", /it is a part of .*modules, where code lies/],
      ["../mod_new", /it is a part of .*modules, where code lies/],
      [join(folder, "node_modules/dep"), /it is a part of .*node_modules, where code lies/],
      [process.execPath, /it is a part of .*, where code lies/],
      [import.meta.dirname, /where code lies/],
    ];
    for (const [path, reason] of cases) refused(() => policy({ write: [path] }), "grant.write", reason);
    // Reading the code of others is no danger by itself.
    assert.ok(policy({ read: ["../mod_other"] }));
  });

  test("if modules are looked for in the data folder", async (t) => {
    const { policy } = await server(t, { plugin_paths: ["../data/module_data"] });
    refused(() => policy({ write: ["data"] }), "grant.write", /where code lies/);
  });

  test("if the module's own folder contains the config file or the data of the server", async (t) => {
    const { folder, policy } = await server(t, { data_path: "../modules/mod_shop/data" });
    refused(() => policy({}), "run", /its own folder .*mod_shop, which it can read, contains the token store/);
    await mkdir(join(folder, "app"));
    await writeFile(join(folder, "app/index.js"), "");
    const config = configFrom({ modules: { app: { run: "sandboxed" } }, data_path: "/srv/d" }, join(folder, "app"));
    const source = locatePath(join(folder, "app"));
    assert.ok(rightsOf(config, source, "sandboxed").policy);
  });
});

test("no module is sandboxed while the server's package, which all of them read, contains files of the operator", async (t) => {
  const source = locatePath(join(await folderOf(t, { "mod_shop/index.js": "" }), "mod_shop"));
  const rights = (log_file: string) => {
    const config = configFrom({ modules: { shop: { run: "sandboxed" } }, data_path: "/srv/d", log_file }, "/srv");
    return () => rightsOf(config, source, "sandboxed");
  };
  const config = join(packageFolder(), "config");
  assert.throws(
    rights(join(config, "server.log")),
    /the server's package, which it can read, contains the log \(.*\): move/,
  );
  assert.ok(rights("/srv/server.log")());
});

test("the data folder is created for its owner alone", async (t) => {
  const folder = await folderOf(t, { "mod_shop.js": "" });
  const config = configFrom({ data_path: "./data", modules: { shop: { grant: { write: ["data"] } } } }, folder);
  const rights = rightsOf(config, locatePath(join(folder, "mod_shop.js")), "sandboxed");
  makeDataFolder(rights);
  const { statSync } = await import("node:fs");
  assert.equal(statSync(join(folder, "data/module_data/shop")).mode & 0o777, 0o700);
});
