/** `modhost run --takeover`: another process replaces the server without a lost request. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Change } from "#core/types.ts";
import { freePort } from "#test/support/free_port.ts";
import { takeoverLoad, untilGone } from "#test/support/takeover_load.ts";
import { Program } from "../spawned.ts";

const config = (more: object = {}) =>
  JSON.stringify({
    modules_enabled: ["http", "http_admin", "./mod_http_a.mjs"],
    http_ports: [0],
    http_interfaces: ["127.0.0.1"],
    https_ports: [],
    admin_port: 0,
    http_log: false,
    log_level: "error",
    ...more,
  });

const source = readFileSync(new URL("../../../../support/takeover_module.mjs", import.meta.url), "utf8");
const files = (more?: object) => ({ "mod_http_a.mjs": source, "modhost.config.json": config(more) });

/** Removes variables of other tests in this folder, which would override the config file. */
const env = { MODHOST_HTTP_PORTS: undefined, MODHOST_HTTPS_PORTS: undefined, MODHOST_ADMIN_PORT: undefined };

async function serving(more?: object) {
  const program = await Program.in(files(more));
  // Without a running server, the command starts one.
  const running = await program.serve(["run", "--takeover", "--json"], env);
  const [at] = running.started.ports;
  const url = `http://127.0.0.1:${at?.port}`;
  const pids = new Set<number>();
  const get = async (path: string) => {
    const text = await (await fetch(`${url}${path}`, { headers: { Connection: "close" } })).text();
    if (path === "/a/pid") pids.add(Number(text));
    return text;
  };
  await get("/a/pid");
  return {
    ...running,
    program,
    url,
    get,
    takeOver: (...more: string[]) => program.run(["run", "--takeover", "--json", ...more], env),
    async [Symbol.asyncDispose]() {
      await get("/a/pid").catch(() => undefined);
      await program[Symbol.asyncDispose]();
      for (const pid of pids) await untilGone(pid);
    },
  };
}

describe("a server that another process takes over", { concurrency: 2, timeout: 120_000 }, () => {
  test("hands over its ports and the saved states of modules, and no upload, download or request is lost", async () => {
    const admin_port = await freePort();
    await using server = await serving({ admin_port });
    const pidOfAdmin = async () => {
      const headers = { Connection: "close" };
      const response = await fetch(`http://127.0.0.1:${admin_port}/admin/api/status`, { headers });
      return ((await response.json()) as { pid: number }).pid;
    };
    const previous = await server.get("/a/pid");
    assert.equal(await pidOfAdmin(), Number(previous));
    assert.equal(await server.get("/a/count"), "1");
    await using load = takeoverLoad(server.url, { pieces: 15, pauseMs: 100 });
    await load.begun();
    const { code, stdout, stderr } = await server.takeOver();
    assert.equal(code, 0, stdout + stderr);
    const { pid, result } = JSON.parse(stdout);
    assert.equal(result, "done");
    const counts = await load.end();
    assert.deepEqual(counts.lost, []);
    assert.ok(counts.requests > 20 && counts.uploads >= 1 && counts.downloads >= 1, JSON.stringify(counts));
    assert.equal(await server.get("/a/pid"), String(pid));
    assert.notEqual(previous, String(pid));
    assert.equal(await server.get("/a/count"), "2");
    await untilGone(Number(previous), false);
    assert.equal(await pidOfAdmin(), pid, "the port of the Admin API is handed on, too");
    process.kill(pid, "SIGTERM");
    const { stdout: whole } = await server.ended;
    const events = whole.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line).event]));
    assert.deepEqual(events.toSorted(), ["handed_over", "handing_over", "started", "started", "stopped", "stopping"]);
  });

  test("keeps serving and reports the reason if the other process fails, before and after the handover", async () => {
    await using server = await serving();
    const previous = await server.get("/a/pid");
    const main = join(server.program.folder, "mod_http_a.mjs");
    assert.equal(await server.get("/a/count"), "1");

    const unfinished = server.get("/a/held");
    const late = await server.takeOver("--wait", "0.5");
    assert.equal(late.code, 1);
    const named = /GET \/a\/held \(\d+ s\) did not end within 0\.5 s; wait longer by --wait/;
    assert.match(JSON.parse(late.stdout).error.message, named);
    await server.get("/a/let_go");
    assert.equal(await unfinished, "at last");

    await writeFile(main, "export default () => { throw new Error('no good'); };");
    const broken = await server.takeOver();
    assert.equal(broken.code, 1);
    const { result, error } = JSON.parse(broken.stdout);
    assert.deepEqual([result, error.code], ["refused", "NOT_HANDED_OVER"]);
    assert.match(error.message, /the module http_a does not load there: .*no good/);

    const configFile = join(server.program.folder, "modhost.config.json");
    await writeFile(configFile, "");
    const emptied = await server.takeOver();
    assert.equal(emptied.code, 1);
    assert.match(JSON.parse(emptied.stdout).error.message, /it is empty; write \{\} for a server with all defaults/);
    await writeFile(configFile, config());

    const killed =
      'process.getBuiltinModule("node:child_process").execFileSync("kill", ["-KILL", String(process.pid)]);';
    // The module loads in the check, in which no port is open. It kills the process that is to
    // serve, in a way that the host cannot refuse.
    await writeFile(
      main,
      source.replace("/* begin */", `if (module.serves() && ${previous} !== process.pid) ${killed}`),
    );
    await using load = takeoverLoad(server.url, { pieces: 3, pauseMs: 50 });
    await load.begun();
    const failed = await server.takeOver();
    assert.equal(failed.code, 1);
    assert.match(JSON.parse(failed.stdout).error.message, /it has ended with SIGKILL/);
    // A killed process loses the connections that it has accepted, and nothing else.
    const lost = (await load.end()).lost.filter((reason) => !/ECONNRESET|socket hang up/.test(reason));
    assert.deepEqual(lost, []);
    assert.equal(await server.get("/a/pid"), previous);
    assert.equal(await server.get("/a/count"), "2");

    // The module loads in the check, and fails when the process is to serve.
    await writeFile(
      main,
      source.replace(
        "/* begin */",
        `if (module.serves() && ${previous} !== process.pid) throw new Error("not twice");`,
      ),
    );
    const second = await server.takeOver();
    assert.equal(second.code, 1);
    assert.match(JSON.parse(second.stdout).error.message, /the module http_a does not load there: .*not twice/);
    assert.equal(await server.get("/a/pid"), previous);
    const lines = readFileSync(join(server.program.folder, "data", "audit.jsonl"), "utf8")
      .trim()
      .split("\n");
    const records = lines.map((line) => JSON.parse(line) as Change);
    const outcomes = records.filter(({ what }) => what === "hand over to another process");
    assert.deepEqual(
      outcomes.map(({ result, by }) => [result, by]),
      [
        ["failed", `process ${previous}`],
        ["failed", `process ${previous}`],
      ],
    );
    server.kill("SIGTERM");
    const reason = /The next process failed to take over, so this one keeps serving: it has ended with SIGKILL/;
    assert.match((await server.ended).stderr, reason);
  });
});
