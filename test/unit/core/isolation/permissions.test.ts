/** Permissions of isolated and sandboxed modules, where the host decides about them. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { configFrom } from "#core/config/index.ts";
import { environmentFor } from "#core/isolation/environment.ts";
import { readKind } from "#core/isolation/received.ts";
import { countReported, type IsolationDeps, taskOf } from "#core/isolation/task.ts";
import { Instance } from "#core/module/instance.ts";
import { Items } from "#core/module/items.ts";
import { locatePath } from "#core/module/locate.ts";
import { permissionsOf, rightsOf } from "#core/module/rights.ts";
import { Authority, PermissionLedger } from "#core/permissions/index.ts";
import { SchemaFault } from "#core/relay/message_schema.ts";
import { sandboxUnavailable } from "#core/sandbox/index.ts";
import { type Files, folderOf, hostOf, logged, pluginHost, stateOf } from "../module/support.ts";

const shop = `
export const isolated = true;
export const depends = ["http", "catalog"];
export const permissions = { call: { catalog: ["find"] }, env: ["SHOP_KEY", "SHOP_OTHER"] };
export default function (module) {
  const catalog = module.depends("catalog");
  const said = (call) => call().then(String, ({ code, message }) => code + ": " + message);
  module.provides("http", {
    route: {
      "GET /find": () => said(() => catalog.find("a")),
      "GET /prices": () => said(() => catalog.prices.list()),
      "GET /env": () => JSON.stringify([process.env.SHOP_KEY, process.env.SHOP_OTHER, process.env.PATH !== undefined]),
    },
  });
}
`;
const catalog = `export default () => ({ find: (name) => "found " + name, prices: { list: () => "1, 2" }, secret: "s" });`;
const files: Files = { "mod_shop.js": shop, "mod_catalog.js": catalog };

function variables(t: TestContext): void {
  Object.assign(process.env, { SHOP_KEY: "k", SHOP_OTHER: "o" });
  t.after(() => {
    delete process.env.SHOP_KEY;
    delete process.env.SHOP_OTHER;
  });
}

async function started(t: TestContext, settings: object | undefined, more: Files = {}) {
  variables(t);
  const modules = settings === undefined ? {} : { modules: { shop: settings } };
  const running = await pluginHost(t, { ...files, ...more }, { modules_enabled: ["http"], ...modules });
  const get = async (path: string) => (await running.inject({ path: `/shop${path}` })).body;
  const permissions = () =>
    Object.fromEntries(
      (stateOf(running, "shop")?.permissions ?? []).map(({ what, ...state }) => [
        what,
        [state.is_declared, state.is_granted, state.used, state.denied],
      ]),
    );
  return { running, get, permissions };
}

describe("an isolated module", () => {
  test("may call all functions and sees all variables if it has no grant, and what it uses is counted", async (t) => {
    const { get, permissions } = await started(t, undefined);
    assert.equal(await get("/find"), "found a");
    assert.equal(await get("/prices"), "1, 2");
    assert.equal(await get("/env"), '["k","o",true]');
    const shown = permissions();
    assert.deepEqual(shown["catalog.find"], [true, true, 1, 0]);
    assert.deepEqual(shown["catalog.prices.list"], [false, true, 1, 0]);
    assert.deepEqual(shown.SHOP_KEY, [true, true, 1, 0]);
  });

  test("may call only the functions that its grant names, and sees only the variables in it", async (t) => {
    const { running, get, permissions } = await started(t, {
      grant: { call: { catalog: ["find"] }, env: ["SHOP_KEY"] },
    });
    assert.equal(await get("/find"), "found a");
    assert.equal(
      await get("/prices"),
      'PERMISSION_DENIED: The module shop may not call catalog.prices.list: to allow it, add modules: { shop: { grant: { call: { catalog: ["prices.list"] } } } } to the configuration',
    );
    assert.equal(await get("/env"), '["k",null,false]');
    const shown = permissions();
    assert.deepEqual(shown["catalog.find"], [true, true, 1, 0]);
    assert.deepEqual(shown["catalog.prices.list"], [false, false, 0, 1]);
    assert.deepEqual(shown.SHOP_OTHER, [true, false, 0, 1]);
    // A thread has the rights of the server to everything else.
    const enforced = stateOf(running, "shop")?.permissions?.filter((each) => each.is_enforced);
    assert.deepEqual([...new Set(enforced?.map(({ kind }) => kind))], ["env", "call"]);
    const warnings = logged(running, "warn").filter(({ msg }) => msg.startsWith("Refused"));
    assert.deepEqual(
      warnings.map(({ msg }) => msg.split(";")[0]),
      ["Refused: it may not see the environment variable SHOP_OTHER", "Refused: it may not call catalog.prices.list"],
    );
  });

  test("is not loaded if it depends on a module that its grant does not name", async (t) => {
    const { running } = await started(t, { grant: {} });
    const state = stateOf(running, "shop");
    assert.equal(state?.status, "failed");
    assert.match(state?.note ?? "", /The module shop may not call catalog\.find: .* call: \{ catalog: \["find"\] \}/);
  });

  test("has its declared permissions in its state although it is not loaded", async (t) => {
    const { running, permissions } = await started(t, { grant: {} });
    assert.equal(stateOf(running, "shop")?.status, "failed");
    assert.deepEqual(permissions(), {
      SHOP_KEY: [true, false, 0, 0],
      SHOP_OTHER: [true, false, 0, 0],
      "catalog.find": [true, false, 0, 1],
    });
  });

  test("is refused nothing with audit, which its state says", async (t) => {
    const { running, get, permissions } = await started(t, { grant: {}, audit: true });
    assert.equal(await get("/prices"), "1, 2");
    assert.equal(await get("/env"), '["k","o",true]');
    assert.deepEqual(permissions()["catalog.prices.list"], [false, false, 0, 1]);
    assert.equal(stateOf(running, "shop")?.is_audited, true);
    const { warnings } = running.host.status();
    assert.ok(warnings.includes("The module shop is not restricted: modules.shop.audit lets everything pass"));
  });
});

describe("the setting run", () => {
  const where = `
import { isMainThread } from "node:worker_threads";
export const depends = ["http"];
export default (module) => module.provides("http", { route: { GET: () => String(isMainThread) } });`;
  const runs = (t: TestContext, file: string, config: object) =>
    pluginHost(t, { "mod_where.js": file }, { modules_enabled: ["http"], ...config });

  test("moves a module into a worker, and has precedence over what the module and modules_isolated say", async (t) => {
    const isolated = await runs(t, where, { modules: { where: { run: "isolated" } } });
    assert.equal((await isolated.inject({ path: "/where" })).body, "false");
    assert.equal(stateOf(isolated, "where")?.run, "isolated");
    const declared = `export const isolated = true;\n${where}`;
    const config = { modules: { where: { run: "trusted" } }, modules_isolated: ["where"] };
    const trusted = await runs(t, declared, config);
    assert.equal((await trusted.inject({ path: "/where" })).body, "true");
    assert.equal(stateOf(trusted, "where")?.run, "trusted");
  });

  test("runs a module sandboxed, or refuses it where there is no sandbox, instead of running it with less", async (t) => {
    const file = where.replace("String(isMainThread)", "String(process.pid)");
    const running = await runs(t, file, { modules: { where: { run: "sandboxed" } } });
    const { status, note } = stateOf(running, "where") ?? {};
    const reason = sandboxUnavailable();
    if (reason === undefined) {
      assert.equal(status, "loaded", note);
      assert.notEqual(Number((await running.inject({ path: "/where" })).body), process.pid);
    } else assert.deepEqual([status, note], ["failed", `A sandboxed module cannot run here: ${reason}`]);
  });
});

describe("the task of a sandboxed module", () => {
  /** Returns the task, and the module object that is made from it. */
  async function sandboxed(t: TestContext, settings: object) {
    const { host } = await hostOf(t, {});
    const config = configFrom(
      {
        modules: { shop: { run: "sandboxed", ...settings } },
        data_path: "/srv/data",
        shop_word: "own",
        shop_more: "named for it",
        other_key: "theirs",
        acme_eab_key: "of the server",
        http_external_url: "https://www.example.org",
        nobodys: "of a module that is not loaded",
      },
      "/srv",
    );
    config.declare({ shop_word: { type: "string", describe: "Its own." } }, "shop");
    config.declare({ other_key: { type: "string", secret: true, describe: "Of another." } }, "other");
    config.declare({ http_external_url: { type: "string", describe: "A URL." } }, "http");
    const source = {
      name: "shop",
      file: "/srv/modules/shop/index.js",
      directory: "/srv/modules/shop",
      root: "/srv/modules/shop",
    };
    const rights = rightsOf(config, source, "sandboxed");
    const ledger = new PermissionLedger();
    const granted = rights.settings.grant ?? {};
    const { audit: isAudited } = rights.settings;
    const authority = new Authority({
      module: "shop",
      folders: rights.folders,
      granted,
      isAudited,
      ledger,
      warn: () => undefined,
    });
    const states = [
      {
        ...host.modules()[0]!,
        name: "other",
        file: "/srv/other.js",
        note: "a note",
        depends: ["x"],
        holds: { timer: 1 },
      },
    ];
    const context = { config, loadTimeout: 5, serves: true, listening: () => [], states: () => states };
    const deps = {
      context,
      ledger,
      hostsOf: () => [],
      grace: () => 1,
      ended: () => undefined,
    } as unknown as IsolationDeps;
    const options = { shop_word: { type: "string", describe: "Its own." } } as const;
    const task = taskOf("shop", { options, host: "*", reloading: false, depends: {} }, deps, { rights, authority });
    const read: string[] = [];
    const channel = {
      notify: (_what: string, ...words: string[]) => read.push(words.join(" ")),
      call: () => undefined,
    };
    const http = { isUsed: false };
    const environment = environmentFor(structuredClone(task), {
      name: "shop",
      kind: "sandbox",
      channel: channel as never,
      log: { of: () => ({ warn: () => undefined }) } as never,
      items: new Items(),
      http: http as never,
      hooked: () => undefined,
    });
    const code = { source, load: () => undefined, options, depends: [], global: false, permissions: {}, hints: [] };
    const { module } = new Instance(code, "*", environment, { reloading: false });
    return { task, module, read };
  }
  const refused = (name: string, grant: RegExp) => (error: Error & { code?: string }) => {
    assert.equal(error.code, "PERMISSION_DENIED", name);
    assert.match(error.message, grant);
    return true;
  };

  test("contains its own options and granted ones, and no others", async (t) => {
    const { task, module, read } = await sandboxed(t, { grant: { options: ["http_external_url"] } });
    assert.deepEqual(Object.keys(task.config.written).sort(), [
      "data_path",
      "http_external_url",
      "shop_more",
      "shop_word",
    ]);
    assert.equal(module.get_option("shop_word"), "own");
    assert.equal(module.get_option("shop_more"), "named for it");
    assert.equal(module.get_option("http_external_url"), "https://www.example.org");
    assert.equal(module.http_url(), "https://www.example.org/shop");
    for (const name of ["other_key", "acme_eab_key", "stop_timeout", "nobodys", "modules", "hosts"]) {
      assert.throws(() => module.get_option(name), refused(name, new RegExp(`options: \\["${name}"\\]`)));
    }
    assert.deepEqual(read.slice(0, 2), ["http_external_url", "other_key"]);
  });

  test("contains secrets of others only if they are granted", async (t) => {
    const { task, module } = await sandboxed(t, { grant: { options: ["other_key", "nobodys"] } });
    assert.equal(module.get_option("other_key"), "theirs");
    assert.equal(module.get_option("nobodys"), "of a module that is not loaded");
    assert.equal(JSON.stringify(task).includes("of the server"), false);
    assert.throws(() => module.http_url(), refused("http_url", /options: \["http_external_url"\]/));
  });

  test("has a data folder of the module's own, which is refused without a grant", async (t) => {
    const granted = await sandboxed(t, { grant: { write: ["data"] } });
    assert.equal(granted.module.data_path(), "/srv/data/module_data/shop");
    assert.equal(granted.module.get_option("data_path"), "/srv/data/module_data/shop");
    assert.deepEqual(granted.read, []);
    const { module, read } = await sandboxed(t, {});
    for (let times = 0; times < 2; times += 1) {
      assert.throws(() => module.data_path(), refused("data_path", /grant: \{ write: \["data"\] \}/));
    }
    assert.deepEqual(read, ["write data"]);
  });

  test("refuses no option with audit, and reports the reads", async (t) => {
    const { module, read } = await sandboxed(t, { audit: true });
    assert.equal(module.get_option("other_key"), "theirs");
    assert.equal(module.get_option("other_key"), "theirs");
    assert.equal(module.data_path(), "/srv/data/module_data/shop");
    assert.deepEqual(read, ["other_key", "write data"]);
  });

  test("says nothing about other modules but their names and states", async (t) => {
    const { task } = await sandboxed(t, {});
    assert.deepEqual(
      task.states.map(({ file, note, depends, holds, permissions }) => [file, note, depends, holds, permissions]),
      [[undefined, undefined, [], {}, undefined]],
    );
  });
});

describe("the audit of what the kernel would refuse", () => {
  test("reports files and programs that JavaScript uses, each once", async () => {
    const module = new URL("../../../../core/isolation/permission_audit.ts", import.meta.url).href;
    const script = `
      import { execFileSync } from "node:child_process";
      import { readFileSync, writeFileSync, rmSync } from "node:fs";
      const { reportPermissions } = await import(${JSON.stringify(module)});
      const seen = [];
      reportPermissions((kind, item) => seen.push(kind + " " + item));
      readFileSync("/etc/hosts"); readFileSync("/etc/../etc/hosts");
      try { execFileSync("/bin/true"); } catch {}
      try { writeFileSync("/no/such/file", ""); } catch {}
      console.log(JSON.stringify(seen));`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      "--permission-audit",
      "--input-type=module",
      "--eval",
      script,
    ]);
    const seen = JSON.parse(stdout) as string[];
    assert.deepEqual(seen.filter((each) => each === "read /etc/hosts").length, 1);
    assert.ok(seen.includes("run /bin/true"), stdout);
    assert.ok(seen.includes("write /no/such/file"), stdout);
  });

  test("lists them as refused unless they are granted; without an audit, nobody counts what passed", async (t) => {
    const folder = await folderOf(t, { "shop/index.js": "", "srv/x": "" });
    const state = (audit: boolean) => {
      const settings = { run: "sandboxed", audit, grant: { read: [join(folder, "srv")] } };
      const config = configFrom({ modules: { shop: settings }, data_path: join(folder, "data") }, join(folder, "etc"));
      const rights = rightsOf(config, locatePath(join(folder, "shop")), "sandboxed");
      const ledger = new PermissionLedger();
      const granted = rights.settings.grant ?? {};
      const warn = () => undefined;
      const authority = new Authority({
        module: "shop",
        folders: rights.folders,
        granted,
        isAudited: audit,
        ledger,
        warn,
      });
      const isolated = { rights, authority };
      countReported(isolated, "read", join(folder, "shop/index.js"));
      countReported(isolated, "read", join(folder, "srv/x"));
      countReported(isolated, "read", "/etc/hosts");
      countReported(isolated, "read", join(folder, "data/module_data/shop/orders.json"));
      countReported(isolated, "write", join(folder, "data/module_data/shop/orders.json.new"));
      const states = permissionsOf({ source: locatePath(join(folder, "shop")), rights, permissions: {} }, ledger);
      return states.map(({ what, used, denied }) => [what, used, denied]);
    };
    assert.deepEqual(state(true), [
      [join(folder, "srv"), 1, 0],
      ["/etc/hosts", 0, 1],
      ["data", 0, 2],
    ]);
    assert.deepEqual(state(false), [
      [join(folder, "srv"), undefined, undefined],
      ["/etc/hosts", undefined, 1],
      ["data", undefined, 2],
    ]);
  });

  test("are taken from a module's process only if they have a known kind", () => {
    assert.equal(readKind("read", "a kind"), "read");
    for (const kind of ["constructor", "", undefined, 1]) assert.throws(() => readKind(kind, "a kind"), SchemaFault);
  });
});
