/**
 * The line that `modhost restore` prints starts the host on the restored folders, whatever paths
 * the configuration contains.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { NodeModule } from "modhost/node";
import { createHost, loadConfig } from "#core/index.ts";
import { startOf } from "#modules/mod_backup/cli/common/start_line.ts";
import { ran } from "#test/unit/core/cli/called.ts";

const modules_enabled = ["http_admin", "backup"];

interface Restored {
  readonly to: string;
  readonly start: string;
  readonly warnings: readonly string[];
}

interface Site {
  /** Contains all files. Its name has characters that are special for a shell. */
  readonly folder: string;
  restore(env?: NodeJS.ProcessEnv): Promise<Restored>;
}

/** Creates and backs up a host with data. `config` gets the path of its folder. */
async function backedUp(
  t: TestContext,
  config: (folder: string) => Readonly<Record<string, unknown>> | string,
  {
    file = "modhost.config.json",
    env = {},
    data = "etc/data",
  }: { file?: string; env?: NodeJS.ProcessEnv; data?: string } = {},
): Promise<Site> {
  const folder = join(await mkdtemp(join(tmpdir(), "modhost-start-")), "it's a $HOME");
  t.after(() => rm(join(folder, ".."), { recursive: true }));
  await mkdir(join(folder, data), { recursive: true });
  await mkdir(join(folder, "etc"), { recursive: true });
  await writeFile(join(folder, data, "notes.txt"), "original");
  const made = config(folder);
  const text = typeof made === "string" ? made : JSON.stringify({ modules_enabled, ...made });
  await writeFile(join(folder, "etc", file), text);
  const backup = await ran(folder, ["backup", "../backups", "--json"], { cwd: "etc", env });
  assert.equal(backup.code, 0, backup.stderr);
  return {
    folder,
    async restore(env = {}) {
      const words = ["restore", "../backups", "--to", "../new one", "--json"];
      const { code, stdout, stderr } = await ran(folder, words, { cwd: "etc", env });
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    },
  };
}

/** Runs the line in a shell and returns the arguments and variables that `modhost` gets. */
function called(line: string): {
  readonly words: readonly string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
} {
  const script = `modhost() { env -0; printf '\\0'; pwd; printf '\\0'; printf '%s\\0' "$@"; }\n${line}\n`;
  const [variables = "", rest = ""] = execFileSync("/bin/sh", ["-c", script], { env: { PATH: process.env.PATH } })
    .toString()
    .split("\0\0");
  const [cwd = "", ...words] = rest.replace(/^\0/, "").split("\0");
  const set = variables.split("\0").filter((one) => one.startsWith("MODHOST_"));
  return {
    words: words.filter((word) => word !== ""),
    env: Object.fromEntries(set.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)])),
    cwd: cwd.trim(),
  };
}

/** Loads the configuration that the line selects. */
async function configBy(line: string, env: NodeJS.ProcessEnv = {}) {
  const { words, env: set, cwd } = called(line);
  assert.equal(words[0], "run");
  return loadConfig({ cwd, env: { ...env, ...set }, path: words[1] === "--config" ? words[2] : undefined });
}

for (const [name, config, more] of [
  ["relative to the config file", () => ({ data_path: "./data" })],
  ["not named at all", () => ({})],
  ["absolute, below the config file", (folder: string) => ({ data_path: join(folder, "etc/data") })],
  ["absolute, elsewhere", (folder: string) => ({ data_path: join(folder, "var") }), { data: "var" }],
  ["next to the folder of the config file", () => ({ data_path: "../var" }), { data: "var" }],
  ["back into the folder of the config file by ..", () => ({ data_path: "../etc/data" })],
  [
    "named by a program",
    () =>
      `export default { modules_enabled: ${JSON.stringify(modules_enabled)}, data_path: process.env.NOWHERE ?? "data" };`,
    { file: "modhost.config.mjs" },
  ],
  [
    "named by YAML",
    (folder: string) =>
      `modules_enabled: [http_admin, backup]\ndata_path: ${JSON.stringify(join(folder, "etc/data"))}\n`,
    { file: "modhost.config.yaml" },
  ],
] as const) {
  test(`the data folder is the restored one if data_path is ${name}`, async (t) => {
    const { folder, restore } = await backedUp(t, config, more);
    const { start, to } = await restore();
    const found = (await configBy(start)).value("data_path") as string;
    assert.ok(found.startsWith(`${to}/`), `${found} of ${start}`);
    assert.equal(await readFile(join(found, "notes.txt"), "utf8"), "original");
    assert.equal(to, join(folder, "new one"));
  });
}

test("the line sets no variable if the configuration already leads to the restored folders", async (t) => {
  const { restore } = await backedUp(t, () => ({ data_path: "./data", node_repo: "./data/nodes" }));
  assert.deepEqual(called((await restore()).start).env, {});
});

test("variables of the original host and of the restore command do not lead to other folders", async (t) => {
  const env: NodeJS.ProcessEnv = {};
  const { folder, restore } = await backedUp(
    t,
    (folder) => {
      env.MODHOST_DATA_PATH = join(folder, "etc/other");
      return {};
    },
    { env, data: "etc/other" },
  );
  for (const given of [{}, env]) {
    const { start, to } = await restore(given);
    assert.equal((await configBy(start, given)).value("data_path"), join(to, "other"));
    await rename(to, join(folder, `done-${Object.keys(given).length}`));
  }
});

test("a restored host does not use the original's data through a symbolic link", async (t) => {
  const { folder, restore } = await backedUp(t, (folder) => ({ data_path: join(folder, "link/data") }));
  await symlink("etc", join(folder, "link"));
  const again = await ran(folder, ["backup", "../backups", "--json"], { cwd: "etc" });
  assert.equal(again.code, 0, again.stderr);
  const { start, to } = await restore();
  const found = (await configBy(start)).value("data_path") as string;
  assert.ok(found.startsWith(`${to}/`), start);
});

test("an option with a single path is set to its restored file, and paths inside other options cause warnings", async (t) => {
  const { folder, restore } = await backedUp(t, (folder) => ({
    data_path: join(folder, "etc/data"),
    log_file: join(folder, "etc/data/log.txt"),
    backup_include: [join(folder, "etc/host.pem")],
    certificates: { "a.test": { certificate: join(folder, "etc/host.pem"), key: "./host.pem" } },
    hosts: { "a.test": { http_files_dir: join(folder, "etc/absent") } },
  }));
  await writeFile(join(folder, "etc/host.pem"), "pem");
  assert.equal((await ran(folder, ["backup", "../backups", "--json"], { cwd: "etc" })).code, 0);
  const { start, to, warnings } = await restore();
  const config = await configBy(start);
  assert.deepEqual(
    [config.value("data_path"), config.written("log_file")],
    [join(to, "data"), join(to, "data/log.txt")],
  );
  assert.deepEqual(
    warnings.filter((text) => text.includes("of the original")).sort(),
    ["backup_include[0]", "certificates.a.test.certificate"].map(
      (option) =>
        `${option} is ${join(folder, "etc/host.pem")}, a path of the original: change it to the restored ${join(to, "host.pem")}`,
    ),
  );
});

test("a module finds its restored folder, whether the config file, a variable or nothing named it", async () => {
  const to = await mkdtemp(join(tmpdir(), "modhost-start-"));
  const lineOf = async (config: object, folder: { to: string; option?: string }, env: NodeJS.ProcessEnv = {}) => {
    await writeFile(join(to, "c.json"), JSON.stringify(config));
    const folders = [
      { name: "config", was: "/old", to: "" },
      { name: "data", was: "/old/data", to: "data" },
      { name: "node_repo", was: `/old/${folder.to}`, ...folder },
    ];
    return called((await startOf({ config: "c.json", folders }, to, env)).line).env;
  };
  const named = (path: string) => ({ MODHOST_NODE_REPO: join(to, path) });
  const option = "node_repo";
  try {
    assert.deepEqual(await lineOf({}, { to: "data/repo" }), {});
    assert.deepEqual(await lineOf({ node_repo: "./data/repo" }, { to: "data/repo", option }), {});
    assert.deepEqual(await lineOf({ node_repo: "/old/data/repo" }, { to: "data/repo" }), named("data/repo"));
    assert.deepEqual(await lineOf({ node_repo: "~/repo" }, { to: "node_repo", option }), named("node_repo"));
    assert.deepEqual(await lineOf({ node_repo: "../old/repo" }, { to: "repo" }), named("repo"));
    assert.deepEqual(await lineOf({}, { to: "data/other", option }), named("data/other"));
    assert.deepEqual(
      await lineOf({}, { to: "data/repo" }, { MODHOST_NODE_REPO: "/old/data/repo" }),
      named("data/repo"),
    );
  } finally {
    await rm(to, { recursive: true });
  }
});

test("the option of a single host, which no variable can set, causes a warning", async () => {
  const folders = [
    { name: "data", was: "/old/data", to: "data" },
    { name: "own_a.test_things", was: "/things", to: "own_a.test_things", option: "own_a.test_things" },
  ];
  const { line, warnings } = await startOf({ folders }, "/restored", {});
  assert.equal(line, "cd /restored && modhost run");
  assert.deepEqual(warnings, [
    "The contents of /things are now in /restored/own_a.test_things: set the option of that module to this path",
  ]);
});

test("the host that the line starts has the identity and the pins of the original, and does not touch the original", async (t) => {
  const settings = (folder: string) => ({
    modules_enabled: ["http_admin", "backup", "node"],
    http_ports: [0],
    https_ports: [],
    http_interfaces: ["127.0.0.1"],
    node_offline: true,
    data_path: join(folder, "etc/data"),
    node_repo: join(folder, "etc/data/nodes/repo"),
  });
  const open = async (configPath: string, env: NodeJS.ProcessEnv) => {
    const host = createHost({ configPath, env, log: false });
    await host.start();
    const node = host.exports<NodeModule>("node");
    await node.open();
    return { node, [Symbol.asyncDispose]: () => host.stop({ timeout: 2 }) };
  };
  const pinsOf = async (node: NodeModule) => (await Array.fromAsync(node.pin.ls())).map(({ cid }) => `${cid}`).sort();
  const { folder, restore } = await backedUp(t, settings);
  await using original = await open(join(folder, "etc/modhost.config.json"), {});
  await original.node.add("kept");
  const backup = await ran(folder, ["backup", "../backups", "--json"], { cwd: "etc" });
  assert.equal(backup.code, 0, backup.stderr);
  const { start } = await restore();
  const { words, env } = called(start);
  await using copy = await open(words[2] as string, env);
  assert.equal(`${(await copy.node.id()).id}`, `${(await original.node.id()).id}`);
  assert.deepEqual(await pinsOf(copy.node), await pinsOf(original.node));
});
