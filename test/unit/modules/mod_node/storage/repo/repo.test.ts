import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { readApiFiles } from "#modules/mod_http_api/cli/rpc/server.ts";
import { openNode } from "#node/node/open.ts";
import { openRepo } from "#node/storage/repo/repo.ts";
import { amend, documentIn, emptyFolder } from "./support.ts";

const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

test("an empty folder becomes a repo once", async (t) => {
  const folder = join(await emptyFolder(t), "deep", "repo");
  const repo = await openRepo(folder, { profile: "local", apiAddress: "/ip4/127.0.0.1/tcp/5280" });
  assert.equal(repo.isNew, true);
  assert.deepEqual((await readdir(folder)).sort(), [
    "config",
    "datastore_spec",
    "keystore",
    "repo.lease",
    "repo.lock",
    "version",
  ]);
  assert.equal(await readFile(join(folder, "version"), "utf8"), "11\n");
  assert.deepEqual(await Promise.all(["config", "keystore"].map((name) => mode(join(folder, name)))), ["600", "700"]);
  assert.deepEqual(repo.stores, {
    kind: "segments",
    blocks: join(folder, "segments"),
    metadata: join(folder, "metadata"),
  });
  assert.equal(repo.config.value("Addresses.API"), "/ip4/127.0.0.1/tcp/5280");
  assert.deepEqual(repo.config.value("Addresses.Swarm"), ["/ip4/127.0.0.1/tcp/0"]);
  assert.deepEqual(repo.config.value("Bootstrap"), []);
  await assert.rejects(openRepo(folder), { code: "REPO_LOCKED" });
  await repo.close();

  const again = await openRepo(folder, { profile: "server", init: false });
  assert.equal(again.isNew, false);
  assert.equal(again.identity.peerId.toString(), repo.identity.peerId.toString());
  assert.equal(again.config.value("Swarm.AddrFilters"), null);
  await again.close();
});

test("the file `api` exists as long as it is announced", async (t) => {
  const folder = await emptyFolder(t);
  await writeFile(join(folder, "api"), "/ip4/127.0.0.1/tcp/1");
  await writeFile(join(folder, "gateway"), "http://127.0.0.1:1");
  const repo = await openRepo(folder);
  assert.ok(!(await readdir(folder)).includes("gateway"), "no gateway serves content at that address");
  const api = () => readFile(join(folder, "api"), "utf8").catch(() => undefined);
  assert.equal(await api(), undefined);
  await repo.announceApi("/ip4/127.0.0.1/tcp/5280");
  assert.equal(await api(), "/ip4/127.0.0.1/tcp/5280");
  await repo.announceApi(undefined);
  await repo.announceApi(undefined);
  assert.equal(await api(), undefined);
  await repo.announceApi("/ip4/127.0.0.1/tcp/5280");
  await repo.close();
  assert.deepEqual((await readdir(folder)).sort(), ["config", "datastore_spec", "keystore", "version"]);
});

test("a folder that is not a repo is not changed when none is to be made", async (t) => {
  const folder = await emptyFolder(t);
  await assert.rejects(openRepo(folder, { init: false }), {
    message: `no IPFS repo found in ${folder}.\nplease run: 'ipfs init'`,
  });
  await assert.rejects(openRepo(folder, { profile: "test,odd" }), { message: "odd is not a profile" });
  await assert.rejects(
    openRepo(folder, { profile: "badgerds" }),
    /this node cannot open a repo with everything in badgerds: /,
  );
  for (const profile of ["pebbleds", "test,pebbleds-measure"]) {
    await assert.rejects(
      openRepo(folder, { profile }),
      /^NodeError: this node cannot make a repo with everything in pebbleds, it can only open those that Kubo has made: leave out the profile/,
    );
  }
  assert.deepEqual(await readdir(folder), []);
});

test("a repo that cannot be opened reports the reason and is not locked afterwards", async (t) => {
  const folder = await emptyFolder(t);
  await (await openRepo(folder)).close();
  const good = await documentIn(folder);
  const spec = await readFile(join(folder, "datastore_spec"), "utf8");
  const refused = async (message: RegExp) => {
    await assert.rejects(openRepo(folder), (error: Error) => message.test(error.message), String(message));
    assert.equal((await readdir(folder)).includes("repo.lock"), false);
  };
  const put = (name: string, content: string) => writeFile(join(folder, name), content);

  await put("version", "12\n");
  await refused(/^Your programs version \(11\) is lower than your repos \(12\)\./);
  await put("version", "10\n");
  await refused(/^ipfs repo needs migration: .* has version 10, this node needs 11/);
  await put("version", "x");
  await refused(/^invalid data in repo version file$/);
  await rm(join(folder, "version"));
  await refused(/has no file `version`/);
  await put("version", "11\n");

  await put("config", "{bad");
  await refused(
    /^failure to decode config: invalid character 'b' looking for beginning of object key string: fix \/.*\/config, /,
  );
  await put("config", JSON.stringify({ ...good, Identity: { PeerID: "" } }));
  await refused(/^identity was not set in config \(was 'ipfs init' run\?\)$/);
  await put("config", JSON.stringify({ ...good, Datastore: { ...(good.Datastore as object), Spec: null } }));
  await refused(/^required Datastore\.Spec entry missing from config file$/);
  await put("config", JSON.stringify({ ...good, Datastore: { ...(good.Datastore as object), Type: "leveldb" } }));
  await refused(/^old style datatstore config detected$/);
  await put("config", JSON.stringify(good));

  await put("datastore_spec", "{}");
  await refused(
    /^datastore configuration of '\{\}' does not match what is on disk '\{"mounts":\[\{"mountpoint":"\/blocks"/,
  );
  await put("datastore_spec", spec);
  await (await openRepo(folder)).close();
  assert.deepEqual(await documentIn(folder), good);
});

test("a repo whose creation was interrupted is created again", async (t) => {
  const folder = await emptyFolder(t);
  await (await openRepo(folder)).close();
  await rm(join(folder, "config"));
  const repo = await openRepo(folder);
  assert.equal(repo.isNew, true);
  await repo.close();
});

test("data without its configuration gets no new identity, and the backup of the configuration is named", async (t) => {
  const folder = await emptyFolder(t);
  const made = await openNode({ repo: folder, offline: true });
  await made.close();
  const config = await readFile(join(folder, "config"));
  await rm(join(folder, "config"));
  await assert.rejects(openRepo(folder), {
    message: /has the data of a repo \(segments, metadata\) and no file `config`, .* Restore that file from a backup/,
  });
  await writeFile(join(folder, "config-pre-x"), config);
  await assert.rejects(openRepo(folder), { message: /has backups next to it: config-pre-x. Restore one of them$/ });
  assert.deepEqual((await readdir(folder)).includes("config"), false);
  await writeFile(join(folder, "config"), config);
  await (await openRepo(folder)).close();
});

test("pipes instead of the files of a repo block nobody", {
  skip: process.platform === "win32",
}, async (t) => {
  const folder = await emptyFolder(t);
  await (await openRepo(folder)).close();
  for (const name of ["api", "api-token", "gateway", "repo.lease"]) execFileSync("mkfifo", [join(folder, name)]);
  assert.equal(await readApiFiles(folder), undefined);
  await (await openRepo(folder)).close();
});

test("a folder that cannot be written is refused by name", async (t) => {
  const folder = await emptyFolder(t);
  await chmod(folder, 0o555);
  const program = new URL("../../../../../../modules/mod_node/storage/repo/repo.ts", import.meta.url);
  // The user is changed inside, because others may not be able to enter the folder of the clone.
  const asNobody = process.getuid?.() === 0 ? "process.setgid(65534); process.setuid(65534);" : "";
  const script = `import { openRepo } from ${JSON.stringify(program.href)};
    ${asNobody}
    for (const path of process.argv.slice(1)) await openRepo(path).catch((error) => console.log(error.message));`;
  const given = [folder, join(folder, "repo")];
  const child = spawn(process.execPath, ["--conditions=source", "--input-type=module", "-e", script, "--", ...given], {
    cwd: "/",
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = await Promise.all([text(child.stdout), once(child, "exit")]);
  const [first = "", second = ""] = said.split("\n");
  assert.match(first, new RegExp(`^the repo ${folder} cannot be written to: EACCES`));
  assert.match(second, new RegExp(`^the repo ${join(folder, "repo")} cannot be made: EACCES`));
});

test("a folder that cannot have subfolders is refused", { skip: !existsSync("/proc/self") }, async () => {
  await assert.rejects(openRepo("/proc/modhost/repo"), {
    message: /^the repo \/proc\/modhost\/repo cannot be made: ENOENT/,
  });
});

test("unknown settings of a later program survive opening", async (t) => {
  const folder = await emptyFolder(t);
  await (await openRepo(folder)).close();
  await amend(folder, { Later: { x: 1 } });
  const repo = await openRepo(folder);
  await repo.config.set("Routing.Type", () => "none");
  await repo.close();
  assert.deepEqual((await documentIn(folder)).Later, { x: 1 });
});
