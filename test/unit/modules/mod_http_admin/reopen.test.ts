import assert from "node:assert/strict";
import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createHost } from "#core/host.ts";
import { folderOf } from "#test/unit/core/module/support.ts";
import { callAt } from "./support.ts";

test("log files that were moved away are opened again by the Admin API and by the host", async (t) => {
  const folder = await folderOf(t, {});
  const [log, requests, socket] = ["server.log", "requests.log", "s"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const host = createHost({
    config: {
      modules_enabled: ["http_admin", "http_log"],
      data_path: folder,
      admin_socket: socket,
      http_ports: [],
      admin_port: 0,
      https_ports: [],
      log_file: log,
      http_log_file: requests,
    },
  });
  await host.start();
  t.after(() => host.stop());
  host.log.warn("before");
  await rename(log, `${log}.1`);
  await rename(requests, `${requests}.1`);
  host.log.warn("between");
  const { status, value } = await callAt<{ result: string; what: string }>(socket, "POST", "/logs/reopen", {});
  assert.deepEqual([status, value.result, value.what], [200, "done", "reopen the logs"]);
  host.log.warn("behind");
  const messages = async (file: string) =>
    (await readFile(file, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).msg as string);
  assert.deepEqual((await messages(`${log}.1`)).slice(-2), ["before", "between"]);
  assert.deepEqual(await messages(log), ["behind"]);
  assert.equal(await readFile(requests, "utf8"), "");
  await rename(log, `${log}.2`);
  await host.reopenLogs("signal SIGUSR2");
  assert.equal(await readFile(log, "utf8"), "");
});

test("a log_file that cannot be opened prevents the start, and the error names it", async (t) => {
  const folder = await folderOf(t, { plain: "" });
  const config = { modules_enabled: [], data_path: folder, log_file: join(folder, "plain", "log") };
  await assert.rejects(createHost({ config }).start(), /Option log_file is .*plain\/log, but it has to be a file/);
});
