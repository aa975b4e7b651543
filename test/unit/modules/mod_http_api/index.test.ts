import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import type { NodeModule } from "modhost/node";
import { createTestHost } from "modhost/testing";
import { launcher } from "#test/support/launchers.ts";
import { startRpc } from "./commands/support.ts";

const apiFile = (folder: string) => readFile(join(folder, "data/repo/api"), "utf8").catch(() => undefined);

test("the file `api` names the port once calls are served, and is removed with the host", async () => {
  const host = await startRpc();
  const { folder } = host;
  assert.equal(await apiFile(folder), `/ip4/127.0.0.1/tcp/${host.http}`);
  const { lowLevel: node } = host.host.exports<NodeModule>("node");
  assert.equal(node.repo.config.value("Addresses.API"), "/ip4/127.0.0.1/tcp/0");
  assert.deepEqual(node.repo.config.value("Bootstrap"), []);
  await host.host.stop();
  assert.deepEqual((await readdir(join(folder, "data/repo"))).sort(), [
    "config",
    "datastore_spec",
    "keystore",
    "metadata",
    "metadata.copy",
    "segments",
    "version",
  ]);
  await host.stop();
});

test("a reload keeps the same node, and unloading closes it", async () => {
  await using host = await startRpc();
  const before = host.host.exports<NodeModule>("node").lowLevel;
  await host.host.reload("http_api");
  assert.equal(host.host.exports<NodeModule>("node").lowLevel, before);
  assert.equal((await host.call("repo/stat")).status, 200);
  assert.equal(await apiFile(host.folder), `/ip4/127.0.0.1/tcp/${host.http}`);
  await host.host.reload("http");
  assert.equal((await host.call("repo/stat")).status, 200);
  await host.host.reload("node");
  assert.equal(host.host.exports<NodeModule>("node").lowLevel, before);
  assert.equal((await host.call("repo/stat")).status, 200);
  await host.host.unload("http_api");
  assert.deepEqual(host.host.residue("http_api"), []);
  await before.blocks.store.stat();
  await host.host.unload("node");
  assert.deepEqual(host.host.residue("node"), []);
  assert.equal((await readdir(join(host.folder, "data/repo"))).includes("repo.lock"), false);
  await assert.rejects(before.blocks.store.stat(), { code: "STORE_CLOSED" });
  await host.host.load("http_api");
  assert.equal((await host.call("repo/stat")).status, 200);
});

test("a repo that cannot be opened is named, and the host serves the rest", async () => {
  const first = await startRpc();
  const folder = join(first.folder, "data/repo");
  const second = await startRpc({ node_repo: folder });
  const [state] = second.host.modules().filter(({ name }) => name === "node");
  assert.equal(state?.status, "failed");
  assert.ok(
    state?.note?.includes(
      `the repo ${folder} does not open: it is in use by process ${process.pid} (its API: ${await apiFile(first.folder)}): ` +
        "stop that one, or set the option node_repo to another folder",
    ),
  );
  assert.equal((await second.call("version")).status, 404);
  await second.stop();
  await first.host.stop();
  await writeFile(join(folder, "config"), "{bad");
  const third = await startRpc({ node_repo: folder });
  const note = third.host.modules().find(({ name }) => name === "node")?.note ?? "";
  assert.match(note, /does not open: failure to decode config: invalid character 'b'/);
  await third.stop();
  await first.stop();
});

test("an unknown profile stops the start, with and without a repo", async () => {
  for (const node_profile of ["nope", "server,nope"]) {
    await assert.rejects(startRpc({ node_profile }), { code: "OPTION_INVALID", message: /node_profile.*nope.*local/s });
  }
  await using host = await startRpc({ node_profile: "local,lowpower" });
  assert.equal((await host.call("version")).status, 200);
});

test("an invalid agent name stops the start", async () => {
  for (const node_agent of ["kubo", "kubo/0.43.0 x", "/kubo/0.43.0", "kubo//1", "k/\u00e4", `k/${"1".repeat(127)}`]) {
    await assert.rejects(startRpc({ node_agent }), { code: "OPTION_INVALID", message: /node_agent.*NAME\/VERSION/s });
  }
});

test("shutdown is confirmed, and then the host ends", async () => {
  await using host = await startRpc();
  assert.deepEqual(await host.call("shutdown"), { status: 200, text: "", lines: [] });
  await host.host.ended;
  assert.equal(host.host.state, "stopped");
  assert.equal((await readdir(join(host.folder, "data/repo"))).includes("repo.lock"), false);
});

test("shutdown ends the program", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const env = { ...process.env, MODHOST_MODULES_ENABLED: "http,http_api", MODHOST_HTTP_PORTS: "0" };
  const child = spawn(process.execPath, [launcher, "run", "--json"], {
    cwd: folder,
    env: { ...env, MODHOST_HTTPS_PORTS: "", NODE_OPTIONS: "" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  t.after(() => child.kill("SIGKILL"));
  const [line] = await once(createInterface(child.stdout), "line");
  const { port } = JSON.parse(String(line)).ports[0];
  const exited = once(child, "exit");
  const response = await fetch(`http://127.0.0.1:${port}/api/v0/shutdown`, { method: "POST" });
  assert.equal(response.status, 200);
  await response.arrayBuffer();
  assert.deepEqual(await exited, [0, null]);
});

test("a host that only loads touches no repo; a call without ports opens it", async () => {
  const config = { modules_enabled: ["http", "http_api"] };
  await using host = await createTestHost({ config, listen: false });
  assert.deepEqual(await readdir(host.folder), []);
  const call = () => host.inject({ method: "POST", path: "/api/v0/repo/version" });
  const responses = await Promise.all([call(), call()]);
  assert.deepEqual(
    responses.map(({ body }) => String(body)),
    ['{"Version":"11"}\n', '{"Version":"11"}\n'],
  );
  assert.ok((await readdir(join(host.folder, "repo"))).includes("repo.lock"));
});
