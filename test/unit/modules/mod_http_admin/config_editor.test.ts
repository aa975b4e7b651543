/** How the dashboard shows and edits the configuration. */
import assert from "node:assert/strict";
import { chmod, lstat, readdir, readFile, rename, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { createHost, type HostOptions, type InlineModule } from "#core/index.ts";
import { type InjectedRequest, inject } from "#core/testing/inject.ts";
import type { Change, ConfigCheck, ConfigFile, OptionState } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { folderOf } from "#test/unit/core/module/support.ts";
import { callAt } from "./support.ts";

const head = `http_ports: [0]
https_ports: []
http_interfaces: [127.0.0.1]
modules_enabled: [http_admin]
`;

const vault: InlineModule = {
  name: "vault",
  options: {
    vault_key: { type: "string", secret: true, describe: "A secret." },
    vault_size: { type: "integer", default: 3, min: 1, applies: "live", describe: "How much." },
    vault_folder: { type: "string", default: "here", applies: "start", describe: "Where." },
  },
  load(module) {
    const read = () => module.get_option_integer("vault_size");
    read();
    module.changed = () => {
      if (read() === 13) throw new Error("thirteen is too much");
    };
  },
};

async function serving(t: TestContext, text: string, options: HostOptions & { readonly name?: string } = {}) {
  const { name = "modhost.config.yaml", env, ...others } = options;
  const folder = await folderOf(t, { [name]: text });
  const file = join(folder, name);
  const host = createHost({
    configPath: file,
    env: { MODHOST_ADMIN_PORT: "0", ...env },
    modules: [vault],
    log: false,
    ...others,
  });
  await host.start();
  t.after(() => host.stop({ timeout: 2 }));
  const call = <T>(method: string, path: string, body?: unknown) =>
    callAt<T>(join(folder, "data", "admin.sock"), method, path, body);
  const shown = async () => (await call<ConfigFile>("GET", "/config/file")).value;
  const save = async (next: string, etag?: string) =>
    call<Change>("POST", "/config/file", { text: next, etag: etag ?? (await shown()).etag });
  return { host, folder, file, call, shown, save };
}

describe("options", () => {
  test("are shown with value, default and source, without secrets and undeclared options", async (t) => {
    const text = `${head}vault_key: hidden-text\nhosts:\n  a.test:\n    vault_size: 9\nnobody_reads: hidden-too\n`;
    const { call } = await serving(t, text, { env: { MODHOST_VAULT_SIZE: "5" }, config: { unload_grace: 1 } });
    const { value: options } = await call<OptionState[]>("GET", "/config");
    const of = (name: string) => options.find((option) => option.name === name);
    const facts = (name: string) => [of(name)?.value, of(name)?.default, of(name)?.source];
    assert.deepEqual(facts("vault_size"), ["5", "3", "environment"]);
    assert.deepEqual(of("vault_size")?.hosts, [{ host: "a.test", value: "9", source: "file" }]);
    assert.deepEqual(facts("vault_folder"), ['"here"', '"here"', "default"]);
    assert.deepEqual(facts("http_ports"), ["[0]", "[5280]", "file"]);
    assert.deepEqual(facts("unload_grace"), ["1", "10", "caller"]);
    assert.deepEqual([...facts("vault_key"), of("vault_key")?.is_secret], ["(secret)", undefined, "file", true]);
    assert.deepEqual(facts("nobody_reads"), [undefined, undefined, "file"]);
    assert.deepEqual(
      [of("vault_size")?.owner, of("vault_size")?.min, of("vault_size")?.variable],
      ["vault", 1, "MODHOST_VAULT_SIZE"],
    );
    assert.doesNotMatch(JSON.stringify(options), /hidden/);
  });

  test("that take effect at the next start keep the current value and show the pending one", async (t) => {
    const { call, save } = await serving(t, head);
    assert.equal((await save(`${head}vault_folder: there\n`)).value.result, "done");
    const { value: options } = await call<OptionState[]>("GET", "/config");
    const option = options.find(({ name }) => name === "vault_folder");
    assert.deepEqual([option?.value, option?.is_waiting], ['"here"', true]);
  });
});

test("are shown to a token with read access, which can neither see the file nor check a text", async (t) => {
  const { host } = await serving(t, `${head}admin_tokens: { looking-token: { name: dash, scopes: [read] } }\n`);
  const headers = { authorization: "Bearer looking-token", "content-type": "application/json" };
  const ask = (path: string, more: InjectedRequest = {}) =>
    inject((socket) => host.connect("admin", socket), { path: `/admin/api${path}`, headers, ...more });
  const options = await ask("/config");
  assert.equal(options.status, 200);
  assert.doesNotMatch(options.body, /looking-token/);
  assert.equal((await ask("/config/file")).status, 403);
  const body = JSON.stringify({ text: head });
  assert.equal((await ask("/config/check", { method: "POST", body })).status, 403);
  assert.equal((await ask("/config/file", { method: "POST", body })).status, 403);
});

describe("a text that is not saved", () => {
  test("contains wrong permissions of a module with their position", async (t) => {
    const { call } = await serving(t, head);
    const text = `${head}modules:\n  vault:\n    grant:\n      connect: [example.org]\n      evn: [A]\n`;
    const { value } = await call<ConfigCheck>("POST", "/config/check", { text });
    const lines = head.split("\n").length;
    assert.deepEqual(
      value.faults.map(({ path, line }) => [path, line]),
      [
        ["modules.vault.grant.evn", lines + 4],
        ["modules.vault.grant.connect", lines + 3],
      ],
    );
    assert.match(value.faults[0]?.message ?? "", /is env meant\?/);
  });

  test("contains warnings about options that nothing reads, with their position and a suggestion", async (t) => {
    const { call } = await serving(t, head, { env: { MODHOST_NOWHERE: "1" } });
    const text = `${head}vault_sise: 7\nhosts: { a.test: { nowhere: 1 } }\n`;
    const { value } = await call<ConfigCheck>("POST", "/config/check", { text });
    assert.deepEqual(value.faults, []);
    assert.deepEqual(value.warnings, [
      { path: "vault_sise", message: "Nothing reads the option vault_sise: is vault_size meant?", line: 5, column: 1 },
      { path: "hosts.a.test.nowhere", message: "Nothing reads the option hosts.a.test.nowhere", line: 6, column: 20 },
    ]);
  });

  test("gets a plan, and changes nothing", async (t) => {
    const { call, file, host } = await serving(t, head);
    const { value } = await call<ConfigCheck>("POST", "/config/check", { text: `${head}vault_size: 7\n` });
    assert.deepEqual(value.faults, []);
    assert.deepEqual(
      value.plan?.options.map(({ name, from, to }) => [name, from, to]),
      [["vault_size", "3", "7"]],
    );
    assert.equal(await readFile(file, "utf8"), head);
    assert.equal(host.config.value("vault_size"), 3);
  });

  for (const [what, more, faults] of [
    ["invalid YAML", "a: [1\n", [{ line: 6, column: 1 }]],
    [
      "wrong values",
      "vault_size: many\nhosts:\n  www.a.test:\n    vault_size: 0\n",
      [
        { path: "vault_size", line: 5, column: 1 },
        { path: "hosts.www.a.test.vault_size", line: 8, column: 5 },
      ],
    ],
    ["a secret of a wrong type", "vault_key: [hidden-text]\n", [{ path: "vault_key", line: 5, column: 1 }]],
  ] as const) {
    test(`with ${what} is refused with the positions of the errors, without secrets`, async (t) => {
      const { call } = await serving(t, head);
      const { value } = await call<ConfigCheck>("POST", "/config/check", { text: `${head}${more}` });
      assert.equal(value.plan, undefined);
      assert.deepEqual(
        value.faults.map(({ message: _, ...position }) => position),
        faults,
      );
      assert.doesNotMatch(JSON.stringify(value), /hidden/);
    });
  }

  test("that names an unknown module is refused with the position of the name", async (t) => {
    const { call } = await serving(t, head);
    const text = head.replace("[http_admin]", "[http_admin, http_nowhere]");
    const { value } = await call<ConfigCheck>("POST", "/config/check", { text });
    assert.match(value.faults[0]?.message ?? "", /No module http_nowhere/);
    assert.deepEqual([value.faults[0]?.path, value.faults[0]?.line], ["modules_enabled", 4]);
  });

  test("may be JSON, with the same positions", async (t) => {
    const values = {
      http_ports: [0],
      https_ports: [],
      http_interfaces: ["127.0.0.1"],
      modules_enabled: ["http_admin"],
    };
    const { call, save } = await serving(t, JSON.stringify(values), { name: "modhost.config.json" });
    const text = JSON.stringify({ ...values, vault_size: 0 }, undefined, 2);
    const { value } = await call<ConfigCheck>("POST", "/config/check", { text });
    assert.deepEqual([value.faults[0]?.path, value.faults[0]?.column], ["vault_size", 3]);
    const broken = await call<ConfigCheck>("POST", "/config/check", {
      text: '{\n  "http_ports": [0],\n  "a": b,\n  "c": "more"\n}',
    });
    assert.deepEqual([broken.value.faults[0]?.line, broken.value.faults[0]?.column], [3, 8]);
    assert.equal((await save(JSON.stringify({ ...values, vault_size: 4 }))).value.result, "done");
  });
});

describe("saving", () => {
  test("writes and applies the file, keeps its mode and link, and stores the previous texts next to it", async (t) => {
    const { file, save, host, folder } = await serving(t, `${head}# a remark\n`);
    await rename(file, join(folder, "real.yaml"));
    await symlink("real.yaml", file);
    await chmod(file, 0o640);
    for (const size of [4, 5, 6, 7, 8]) {
      const { status, value } = await save(`${head}# a remark\nvault_size: ${size}\n`);
      assert.deepEqual([status, value.result, value.by], [200, "done", "admin socket"]);
      assert.equal(host.config.value("vault_size"), size);
    }
    assert.ok((await lstat(file)).isSymbolicLink());
    assert.deepEqual((await readdir(folder)).filter((name) => name.includes("real")).toSorted(), [
      "real.yaml",
      "real.yaml.1",
      "real.yaml.2",
      "real.yaml.3",
    ]);
    assert.match(await readFile(join(folder, "real.yaml.1"), "utf8"), /# a remark\nvault_size: 7\n$/);
    for (const name of ["real.yaml", "real.yaml.1"]) assert.equal((await stat(join(folder, name))).mode & 0o777, 0o640);
  });

  test("is refused if somebody else has changed the file meanwhile", async (t) => {
    const { file, save, shown } = await serving(t, head);
    const { etag = "" } = await shown();
    const theirs = `${head}vault_size: 8\n`;
    await writeFile(file, theirs);
    const { status, value } = await save(`${head}vault_size: 9\n`, etag);
    assert.deepEqual([status, value.result, value.error?.code], [409, "refused", "CONFIG_CHANGED"]);
    assert.equal(await readFile(file, "utf8"), theirs);
  });

  test("writes nothing for an invalid text, and restores the previous text when a change cannot be applied", async (t) => {
    const { file, save, host } = await serving(t, head);
    const wrong = await save(`${head}vault_size: 0\n`);
    assert.deepEqual([wrong.status, wrong.value.error?.code], [409, "CONFIG_INVALID"]);
    const failed = await save(`${head}vault_size: 13\n`);
    assert.deepEqual([failed.status, failed.value.error?.code], [422, "CONFIG_NOT_APPLIED"]);
    assert.match(failed.value.error?.message ?? "", /thirteen is too much/);
    assert.equal(await readFile(file, "utf8"), head);
    assert.equal(host.config.value("vault_size"), 3);
  });

  test("causes only one change, which the watch of the file does not repeat", { timeout: 300_000 }, async (t) => {
    const { save, call, file } = await serving(t, `${head}config_watch: true\n`);
    await save(`${head}config_watch: true\nvault_size: 5\n`);
    await writeFile(file, `${head}config_watch: true\nvault_size: 6\n`);
    const changes = async () => (await call<Change[]>("GET", "/changes")).value.map(({ by }) => by);
    await eventually("the change of the file is listed", async () => (await changes()).includes("file watch"));
    assert.deepEqual(await changes(), ["admin socket", "file watch"]);
  });

  test("is refused without a config file and for a program, with a reason", async (t) => {
    const script = `export default { http_ports: [0], https_ports: [], http_interfaces: ["127.0.0.1"], modules_enabled: ["http_admin"] };`;
    const { shown, save } = await serving(t, script, { name: "modhost.config.mjs" });
    const { is_editable, reason, text, format } = await shown();
    assert.deepEqual([is_editable, text, format], [false, script, "script"]);
    assert.match(reason ?? "", /it is a program/);
    const { status, value } = await save(script);
    assert.deepEqual([status, value.error?.code], [409, "CONFIG_NOT_EDITABLE"]);
  });
});
