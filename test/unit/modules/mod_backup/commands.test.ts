/** `modhost backup` and `modhost restore`, with and without a running server. */
import assert from "node:assert/strict";
import { chown, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createTestHost, type TestHostOptions } from "#core/testing/index.ts";
import type { Change } from "#core/types.ts";
import type { BackupResult } from "#modules/mod_backup/types.ts";
import { type Ran, ran } from "#test/unit/core/cli/called.ts";

const modules_enabled = ["http_admin", "backup"];

async function site(t: TestContext, config: object = {}, files: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-backup-"));
  t.after(() => rm(folder, { recursive: true }));
  const all = {
    "etc/modhost.config.json": JSON.stringify({ modules_enabled, data_path: "./data", ...config }),
    ...files,
  };
  for (const [path, content] of Object.entries(all)) {
    await mkdir(join(folder, path, ".."), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  const run = (...words: string[]) => ran(folder, words, { cwd: "etc" });
  return { folder, run };
}

/** Starts a server, and creates a folder from which commands find it. */
async function served(t: TestContext, options: TestHostOptions = {}) {
  const running = await createTestHost({ ...options, config: { modules_enabled, ...options.config } });
  t.after(() => running.stop());
  return { ...running, ...(await site(t, { data_path: running.folder })), data: running.folder };
}

function json<T = BackupResult>({ code, stdout, stderr }: Ran): T {
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as T;
}

test("a running server makes the backup: the record has the requester, and the snapshot the server's data", async (t) => {
  const { run, folder, data, logged } = await served(t);
  await writeFile(join(data, "notes.txt"), "one");
  const destination = join(folder, "backups");
  const first = json(await run("backup", "../backups", "--json"));
  assert.equal(first.place, destination);
  const second = json(await run("backup", "../backups", "--json", "--keep", "1"));
  assert.deepEqual(second.removed, [first.id]);
  const audit = (await readFile(join(data, "audit.jsonl"), "utf8")).trim().split("\n");
  const { by, what, result } = JSON.parse(audit.at(-1) ?? "") as Change;
  assert.deepEqual([by, what, result], ["admin socket", `back up to ${destination}`, "done"]);
  const [listed] = json<{ id: string; version: string }[]>(await run("backup", "../backups", "--list", "--json"));
  assert.equal(listed?.id, second.id);
  json(await run("backup", "../backups", "--verify", "--json"));
  const { to, start } = json<{ to: string; start: string }>(
    await run("restore", "../backups", "--to", "../new", "--json"),
  );
  assert.equal(to, join(folder, "new"));
  assert.equal(start, `cd ${to} && modhost run`);
  assert.equal(await readFile(join(to, "data", "notes.txt"), "utf8"), "one");
  assert.ok(!(await readdir(join(to, "data"))).includes("admin.sock"));
  assert.deepEqual(logged("error"), []);
});

test("the folder of a running server is not replaced, even with --force", async (t) => {
  const { run, data } = await served(t);
  json(await run("backup", "../backups", "--json"));
  const refused = await run("restore", "../backups", "--to", data, "--force", "--json");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /A server runs on .*: stop it first/);
  assert.ok((await readdir(data)).includes("admin.sock"));
});

test("without a server the command makes the backup, and the restored folder has the layout of the original", async (t) => {
  const certificate = "secret/tls/host.pem";
  const { run, folder } = await site(
    t,
    {
      certificates: { "a.example": { certificate: `../${certificate}`, key: "./host.key" } },
      backup_include: ["./modules", "/nowhere/at/all"],
      backup_to: "../backups",
    },
    {
      [certificate]: "cert",
      "etc/host.key": "key",
      "etc/modules/mod_x.js": "export default () => {}",
      "etc/data/a/b": "c",
    },
  );
  await symlink("/etc/hostname", join(folder, "etc/data/link"));
  const backup = await run("backup", "--json");
  const { warnings } = json(backup);
  assert.match(backup.stderr, /no server runs on this configuration/);
  assert.ok(warnings.some((text) => text.includes("data/link is a symbolic link, and is left out")));
  const shown = await run("restore", "../backups", "--to", "../new", "--no-json");
  const to = join(folder, "new");
  assert.match(shown.stdout, new RegExp(`Start it: modhost run --config ${join(to, "modhost.config.json")}\n`));
  assert.match(shown.stdout, /Files of other folders are in/);
  const found = await Promise.all(
    ["host.key", "data/a/b", `files${folder}/${certificate}`, "modules/mod_x.js"].map((path) =>
      readFile(join(to, path), "utf8"),
    ),
  );
  assert.deepEqual(found, ["key", "c", "cert", "export default () => {}"]);
});

test("without http_admin the command does not claim that no server runs, because it could not find one", async (t) => {
  const { run } = await site(t, { modules_enabled: ["backup"] });
  const { code, stderr } = await run("backup", "../backups", "--json");
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stderr, /no server runs/);
  assert.match(
    stderr,
    /cannot find out whether a server runs on it without the module http_admin: if one runs, add http_admin to modules_enabled/,
  );
});

test("a backup is listed and restored although the named config file does not exist, because that file may have been lost", async (t) => {
  const { run, folder } = await site(t, {}, { "etc/data/a": "b" });
  const { id } = json(await run("backup", "../backups", "--json"));
  const lost = ["--config", "lost.yaml", "--json"];
  assert.equal(json<{ id: string }[]>(await run("backup", "../backups", "--list", ...lost))[0]?.id, id);
  const restored = await run("restore", "../backups", "--to", "../new", ...lost);
  json(restored);
  assert.match(restored.stderr, /There is no config file .*lost\.yaml: options come only from the environment/);
  assert.equal(await readFile(join(folder, "new/data/a"), "utf8"), "b");
  const { code, stderr } = await run("backup", "../backups", ...lost);
  assert.equal(code, 1);
  assert.match(stderr, /There is no config file .*lost\.yaml: name an existing file/);
});

test("the line that starts a restored host names a data folder that was outside of the config folder", async (t) => {
  const { run, folder } = await site(t, { data_path: "../var" }, { "var/a": "b" });
  json(await run("backup", "../backups", "--json"));
  const { start, to } = json<{ start: string; to: string }>(
    await run("restore", "../backups", "--to", "../new", "--json"),
  );
  assert.equal(start, `MODHOST_DATA_PATH=${to}/data modhost run --config ${to}/modhost.config.json`);
  assert.equal(await readFile(join(folder, "new/data/a"), "utf8"), "b");
});

test("a damaged object makes --verify exit with 1 and name it, and a restore creates no folder", async (t) => {
  const { run, folder } = await site(t, {}, { "etc/data/a": "b" });
  json(await run("backup", "../backups", "--json"));
  const objects = join(folder, "backups", "objects");
  const [shard = ""] = await readdir(objects);
  const [name = ""] = await readdir(join(objects, shard));
  await writeFile(join(objects, shard, name), "something else");
  const verified = await run("backup", "../backups", "--verify", "--no-json");
  assert.equal(verified.code, 1);
  assert.match(verified.stderr, new RegExp(`objects/${shard}/${name} is damaged`));
  const restored = await run("restore", "../backups", "--to", "../new", "--json");
  assert.equal(restored.code, 1);
  assert.match(restored.stderr, /is damaged/);
  assert.ok(!(await readdir(folder)).includes("new"));
  const repaired = await run("backup", "../backups", "--verify", "--repair", "--json");
  assert.equal(repaired.code, 1);
  json(await run("backup", "../backups", "--json"));
  json(await run("restore", "../backups", "--to", "../new", "--json"));
});

test("a key file encrypts the backup, and is needed to restore it", async (t) => {
  const { run, folder } = await site(t, {}, { key: "a key\n", "etc/data/a": "plain text" });
  json(await run("backup", "../backups", "--key-file", "../key", "--json"));
  const refused = await run("restore", "../backups", "--to", "../new", "--json");
  assert.match(refused.stderr, /is encrypted: name the file of its key by --key-file/);
  json(await run("restore", "../backups", "--to", "../new", "--key-file", "../key", "--json"));
  assert.equal(await readFile(join(folder, "new/data/a"), "utf8"), "plain text");
});

test("wrong calls exit with 2, and impossible ones with 1, each with a reason", async (t) => {
  const { run } = await site(t);
  const cases: readonly (readonly [number, RegExp, ...string[]])[] = [
    [2, /--keep takes a whole number from 1 on, not 0/, "backup", "x", "--keep", "0"],
    [2, /Name one destination/, "backup", "x", "y"],
    [2, /Give either --list or --verify/, "backup", "x", "--list", "--verify"],
    [2, /--repair goes with --verify/, "backup", "x", "--repair"],
    [2, /restore needs --to FOLDER/, "restore", "x"],
    [1, /set the option backup_to/, "backup"],
    [1, /There is no backup in/, "backup", "../none", "--list"],
    [1, /needs an access key: set backup_s3_key_id/, "backup", "s3://bucket"],
  ];
  for (const [code, reason, ...words] of cases) {
    const found = await run(...words);
    assert.match(found.stderr, reason);
    assert.equal(found.code, code, words.join(" "));
  }
  json(await run("backup", "../backups", "--json"));
  const unknown = await run("restore", "../backups", "--to", "../new", "--snapshot", "x");
  assert.match(unknown.stderr, /There is no snapshot x in .*--list shows all/);
});

test("a server that ends during a backup causes an error, and so does its refusal", async (t) => {
  const { run, folder } = await site(t);
  let sent = [200, `{"progress":{"files":1,"bytes":1,"added":1,"total":2}}\n{"pro`] as const as readonly [
    number,
    string,
  ];
  const server = createServer((request, response) => {
    request.resume();
    if (request.method === "GET") response.end(`{"modules":[{"name":"backup","status":"loaded"}]}`);
    else response.writeHead(sent[0]).write(sent[1], () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(join(folder, "other.sock"), resolve));
  t.after(() => server.close());
  const broken = await run("backup", "../backups", "--socket", "../other.sock");
  assert.deepEqual([broken.code, broken.stdout], [1, ""]);
  assert.match(broken.stderr, /The server ended before the backup did/);
  sent = [409, `{"error":{"code":"conflict","message":"A backup is under way"}}\n`];
  const refused = await run("backup", "../backups", "--socket", "../other.sock");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /A backup is under way/);
});

test("the data of another user is not changed", { skip: process.getuid?.() !== 0 }, async (t) => {
  const { run, folder } = await site(t, {}, { "etc/data/a": "b" });
  await chown(join(folder, "etc/data"), 12_345, 12_345);
  const { code, stderr } = await run("backup", "../backups");
  assert.equal(code, 1);
  assert.match(stderr, /belongs to another user: .* sudo -u '#12345'/);
});

test("if the module is not enabled, the command says so", async (t) => {
  const { run } = await site(t, { modules_enabled: [] });
  const { code, stderr } = await run("backup", "../backups");
  assert.equal(code, 1);
  assert.match(stderr, /The module backup is not loaded: add it to modules_enabled/);
  const server = await served(t, { config: { modules_enabled: ["http_admin"] } });
  assert.match((await server.run("backup", "../backups")).stderr, /The module backup is not loaded/);
});
