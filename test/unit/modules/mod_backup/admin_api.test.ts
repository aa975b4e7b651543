/** Backups through the Admin API, and of modules that provide data. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { BackupFile, BackupItem, Module } from "#core/types.ts";
import { FolderBackend } from "#modules/mod_backup/backends/folder.ts";
import { openRepository } from "#modules/mod_backup/repository/repository.ts";
import type { BackupLine, BackupState } from "#modules/mod_backup/types.ts";
import { adminHost } from "#test/unit/modules/mod_http_admin/support.ts";
import { contentsOf } from "./support.ts";

/** Starts a host with a module whose data waits until `go` is called. */
async function waitingHost(t: TestContext, more: Partial<BackupItem> = {}) {
  const calls: string[] = [];
  const reading = Promise.withResolvers<void>();
  const waiting = Promise.withResolvers<void>();
  async function* read(): AsyncGenerator<Uint8Array> {
    reading.resolve();
    await waiting.promise;
    yield Buffer.from("of one moment");
  }
  const item: BackupItem = {
    snapshot: async () => {
      calls.push("held");
      const files: BackupFile[] = [{ folder: "store", path: "a/b", read }];
      return { folders: { store: "/srv/store" }, files, release: () => calls.push("released") };
    },
    ...more,
  };
  const keeper = (module: Module) => {
    module.provides("backup", item);
  };
  const host = await adminHost(t, {
    modules: [{ name: "keeper", load: keeper }],
    config: { modules_enabled: ["http_admin", "backup"], admin_tokens: ["of-the-port"] },
  });
  const to = join(host.folder, "..", `${host.folder.split("/").at(-1)}-backups`);
  t.after(() => import("node:fs/promises").then(({ rm }) => rm(to, { recursive: true, force: true })));
  return { ...host, to, calls, reading: reading.promise, go: waiting.resolve };
}

/** Requests a backup and returns the lines of the response. `leave` breaks the connection. */
function requestBackup(socketPath: string, body: object) {
  const headers = { "Content-Type": "application/json" };
  const sent = request({ socketPath, agent: false, method: "POST", path: "/admin/api/backup", headers });
  sent.end(JSON.stringify(body));
  const lines = new Promise<readonly BackupLine[]>((resolve, reject) => {
    sent.on("error", reject).on("response", async (response) => {
      const text = Buffer.concat(await response.toArray().catch(() => [])).toString();
      resolve(
        text
          .split("\n")
          .filter(Boolean)
          .map((line) => JSON.parse(line) as BackupLine),
      );
    });
  });
  lines.catch(() => undefined);
  return { lines, leave: () => sent.destroy() };
}

const stateOf = async ({ call }: { call: Awaited<ReturnType<typeof adminHost>>["call"] }) =>
  (await call<BackupState>("GET", "/backup")).value;

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  for (let looks = 0; !(await holds()); looks += 1) {
    assert.ok(looks < 2000, "the expected state was not reached");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("a backup contains a module's data from a folder next to the data folder, and releases it at the end", async (t) => {
  const host = await waitingHost(t);
  host.go();
  const last = (await requestBackup(host.socket, { to: host.to }).lines).at(-1);
  assert.ok(last !== undefined && "done" in last);
  assert.deepEqual(host.calls, ["held", "released"]);
  const repository = await openRepository(new FolderBackend(host.to));
  const { folders } = await repository.snapshot(last.done.id);
  const store = folders.find(({ name }) => name === "keeper_store");
  assert.deepEqual(store, { name: "keeper_store", was: "/srv/store", to: "keeper_store", option: "keeper_store" });
  assert.ok("a/b" in (await contentsOf(repository, last.done.id)));
  assert.deepEqual((await stateOf(host)).done?.id, last.done.id);
});

test("a backup ends with its caller, and the data is released", async (t) => {
  const host = await waitingHost(t);
  const { leave } = requestBackup(host.socket, { to: host.to });
  await host.reading;
  assert.match((await stateOf(host)).running?.by ?? "", /admin socket/);
  leave();
  host.go();
  await until(() => host.calls.includes("released"));
  await until(async () => (await stateOf(host)).failed !== undefined);
  assert.equal((await stateOf(host)).failed?.reason, "it was cancelled");
});

test("a detached backup continues without the caller, and another one is refused meanwhile", async (t) => {
  const host = await waitingHost(t);
  const { leave } = requestBackup(host.socket, { to: host.to, detach: true });
  await host.reading;
  const second = await host.call<{ error: { message: string } }>("POST", "/backup", { to: host.to });
  assert.equal(second.status, 409);
  assert.match(second.value.error.message, /A backup has been running since/);
  leave();
  host.go();
  await until(async () => (await stateOf(host)).done !== undefined);
});

test("a backup can be cancelled", async (t) => {
  const host = await waitingHost(t);
  const { lines } = requestBackup(host.socket, { to: host.to });
  await host.reading;
  const cancelling = host.call<BackupState>("POST", "/backup/cancel", {});
  host.go();
  const { value } = await cancelling;
  assert.equal(value.failed?.reason, "it was cancelled");
  assert.deepEqual((await lines).at(-1), { failed: "The backup was cancelled" });
  assert.equal((await host.call("POST", "/backup/cancel", {})).status, 409);
});

test("a backup fails with the name of a module that cannot take a snapshot", async (t) => {
  const host = await waitingHost(t, { snapshot: () => Promise.reject(new Error("not today")) });
  const lines = await requestBackup(host.socket, { to: host.to }).lines;
  assert.deepEqual(lines.slice(-1), [{ failed: "The data of the module keeper cannot be backed up: not today" }]);
});

test("a data folder inside a module's own folder is refused, and the data is released", async (t) => {
  const calls: string[] = [];
  const host = await waitingHost(t, {
    snapshot: async () => ({ folders: { store: "/" }, files: [], release: () => calls.push("released") }),
  });
  const [last] = (await requestBackup(host.socket, { to: host.to }).lines).slice(-1);
  assert.match(JSON.stringify(last), /The data folder .* is inside \/, which belongs to a module/);
  assert.deepEqual(calls, ["released"]);
});

test("only callers of the socket may choose another destination, and keep must be a number", async (t) => {
  const host = await waitingHost(t);
  const headers = { "content-type": "application/json", authorization: "Bearer of-the-port" };
  const response = await host.ask({ path: "/admin/api/backup", method: "POST", headers, body: `{"to":"/tmp/x"}` });
  assert.equal(response.status, 403);
  assert.match(response.body, /only from callers of the admin socket/);
  assert.equal((await host.call("POST", "/backup", { to: host.to, keep: 0.5 })).status, 400);
  assert.deepEqual(host.calls, []);
});
