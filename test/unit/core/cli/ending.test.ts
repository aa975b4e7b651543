/** The end of the program, and what it prints then. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Change } from "#core/types.ts";
import { Program } from "./spawned.ts";

const mod = `import { setImmediate as later } from "node:timers/promises";
// As tracing.mjs of the guide ends its SDK.
process.once("beforeExit", async () => { await later(); console.log(JSON.stringify({ event: "last spans sent" })); });
export default function slow(module) {
  module.depends("http");
  let open;
  let begun = 0;
  const held = new Promise((resolve) => { open = resolve; });
  module.hook("server-stopping", () => void setTimeout(open, 100));
  module.provides("http", { route: {
    "GET /": () => "served",
    "GET /begun": () => String(begun),
    "GET /held": async () => (begun += 1, await held, "at last"),
    "GET /never": () => (begun += 1, new Promise(() => undefined)),
  } });
}`;

async function serving(env: NodeJS.ProcessEnv = {}) {
  const program = await Program.in({ "mod_slow.mjs": mod });
  const running = await program.serve(["run", "./mod_slow.mjs"], {
    MODHOST_MODULES_ENABLED: "http,http_health",
    ...env,
  });
  const url = running.started.apps.find(({ name }) => name === "slow")?.urls[0]?.replace(/\/$/, "") ?? "";
  return { ...running, folder: program.folder, url, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

/** Waits until a handler has been called that does not respond yet. */
async function untilBegun(url: string): Promise<void> {
  while ((await (await fetch(`${url}/begun`)).text()) !== "1") await sleep(10);
}

/** Returns the lines of the output that are JSON. */
const events = (stdout: string) =>
  stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as { event?: string; signal?: string; requests?: string[]; status?: number });

describe("the end of a server", { concurrency: 2 }, () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`at ${signal} prints what it waits for, and finishes the requests`, async () => {
      await using running = await serving();
      const pending = fetch(`${running.url}/held`).then((response) => response.text());
      await untilBegun(running.url);
      running.kill(signal);
      assert.equal(await pending, "at last");
      const { stdout, code } = await running.ended;
      assert.equal(code, 0);
      assert.deepEqual(
        events(stdout).flatMap(({ event }) => (event === undefined ? [] : [event])),
        ["started", "stopping", "stopped", "last spans sent"],
        "the listeners to beforeExit are awaited after the last request",
      );
      const stopping = events(stdout).find(({ event }) => event === "stopping");
      assert.equal(stopping?.signal, signal);
      assert.match(stopping?.requests?.join() ?? "", /^GET \/slow\/held \(\d+ s\)/);
      const [line, ...more] = (await readFile(join(running.folder, "data/audit.jsonl"), "utf8")).trimEnd().split("\n");
      const { what, by } = JSON.parse(line ?? "") as Change;
      assert.deepEqual([what, by, more], ["stop", `signal ${signal}`, []]);
    });
  }

  test("with stop_delay keeps serving while it reports not ready, and prints repeatedly what it waits for", async () => {
    await using running = await serving({ MODHOST_STOP_DELAY: "0.4", MODHOST_UNLOAD_GRACE: "3.2" });
    const never = fetch(`${running.url}/never`).catch((error: Error) => error.message);
    await untilBegun(running.url);
    const health = `${new URL(running.url).origin}/health/ready`;
    running.kill("SIGTERM");
    // On a new connection.
    const ready = async () => (await fetch(health, { headers: { Connection: "close" } })).status;
    while ((await ready()) === 200);
    assert.equal(await ready(), 503);
    const response = await fetch(`${running.url}/`, { headers: { Connection: "close" } });
    assert.deepEqual([response.status, await response.text()], [200, "served"]);
    const { stdout, code } = await running.ended;
    assert.equal(code, 0);
    assert.equal(await never, "fetch failed");
    const printed = events(stdout).filter(({ event }) => event !== "started");
    assert.deepEqual(
      printed.map(({ event }) => event),
      ["stopping", "waiting", "stopped", "last spans sent"],
    );
    assert.match(printed[1]?.requests?.join() ?? "", /^GET \/slow\/never/);
  });

  test("cuts requests that do not end in time, and names them in the log and in its last line", async () => {
    await using running = await serving({ MODHOST_UNLOAD_GRACE: "0.2" });
    const pending = fetch(`${running.url}/never`).catch((error: Error) => error.message);
    await untilBegun(running.url);
    running.kill("SIGTERM");
    const { stderr, stdout, code } = await running.ended;
    assert.equal(code, 0);
    const last = events(stdout).at(-2) as { event?: string; cut?: string[] };
    assert.equal(last.event, "stopped");
    assert.match(last.cut?.join() ?? "", /^GET \/slow\/never \(\d+ s\)$/);
    assert.match(stderr, /Cut off requests that had not ended after 0\.2 s: GET \/slow\/never \(\d+ s\)/);
    assert.equal(await pending, "fetch failed");
  });
});
