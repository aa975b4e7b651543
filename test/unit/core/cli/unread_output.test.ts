/**
 * If nobody reads the output of the server, or the disk is full, it keeps serving and stops when it
 * is requested to.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdtempSync, openSync, readSync, writeFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { eventually } from "#test/support/eventually.ts";
import { launcher } from "#test/support/launchers.ts";
import { withoutNode } from "./spawned.ts";

const folder = mkdtempSync(join(tmpdir(), "modhost-unread-"));
const children = new Set<ChildProcess>();
after(async () => {
  for (const child of children) child.kill("SIGKILL");
  await rm(folder, { recursive: true });
});

/** Logs 100 KB for each request. It writes its port to a file, since nobody may read its output. */
writeFileSync(
  join(folder, "mod_talk.mjs"),
  `import { renameSync, writeFileSync } from "node:fs";
   export default function talk(module) {
     module.depends("http");
     module.ready = () => {
       writeFileSync(process.env.PORT_FILE + ".new", String(module.listening()[0].port));
       renameSync(process.env.PORT_FILE + ".new", process.env.PORT_FILE);
     };
     module.provides("http", { route: {
       "GET /": () => "served",
       "GET /log": () => (module.log.error("%s", "x".repeat(100_000)), "served"),
       "GET /console": () => (console.error("to nobody"), console.log("to nobody"), "served"),
     } });
   }`,
);

let made = 0;
/** Creates a named pipe that has room for 64 KB, and that only the test can read. */
function unreadPipe(): { path: string; fd: number } {
  const path = join(folder, `pipe${(made += 1)}`);
  execFileSync("mkfifo", [path]);
  return { path, fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK) };
}

async function start(stdio: ("pipe" | number)[], env: NodeJS.ProcessEnv = {}) {
  const portFile = join(folder, `port${(made += 1)}`);
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [launcher, "run", "./mod_talk.mjs"], {
    cwd: folder,
    env: {
      ...inherited,
      PORT_FILE: portFile,
      MODHOST_HTTP_PORTS: "0",
      MODHOST_HTTPS_PORTS: "",
      MODHOST_ADMIN_PORT: "0",
      MODHOST_DATA_PATH: mkdtempSync(join(folder, "data-")),
      ...withoutNode,
      MODHOST_HTTP_MAX_HEADER_SIZE: "1000000",
      ...env,
    },
    stdio: ["ignore", ...stdio],
  });
  children.add(child);
  const ended = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  void ended.then(() => children.delete(child));
  let port: string | undefined;
  await eventually("it serves", async () => {
    assert.equal(child.exitCode, null, "it has ended instead of serving");
    port = await readFile(portFile, "utf8").catch(() => undefined);
    return port;
  });
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}/talk${path}`)).text();
  return { child, ended, get };
}

/** Checks that the server responds, and that SIGTERM ends it normally. */
async function holds({ child, ended, get }: Awaited<ReturnType<typeof start>>): Promise<void> {
  assert.equal(await get("/"), "served");
  child.kill("SIGTERM");
  const end = await Promise.race([ended, wait(60_000, "it does not end", { ref: false })]);
  assert.deepEqual(end, { code: 0, signal: null });
}

const long = `/?${"a".repeat(100_000)}`;

/** Sends enough requests to fill every buffer of the log. */
async function flood(get: (path: string) => Promise<string>, path: string): Promise<void> {
  for (let sent = 0; sent < 60; sent += 10) await Promise.all(Array.from({ length: 10 }, () => get(path)));
}

describe("a server whose output nobody reads keeps serving if", { concurrency: 2 }, () => {
  test("the reader of its log has left", async () => {
    const running = await start(["pipe", "pipe"]);
    running.child.stdout?.resume();
    running.child.stderr?.destroy();
    for (const path of ["/log", "/log", "/console", "/log"]) assert.equal(await running.get(path), "served");
    await holds(running);
  });

  test("the reader of its output has left", async () => {
    const running = await start(["pipe", "pipe"]);
    running.child.stderr?.resume();
    running.child.stdout?.destroy();
    for (const path of ["/log", "/console", "/log"]) assert.equal(await running.get(path), "served");
    await holds(running);
  });

  test("both streams are on a full disk", async () => {
    const full = openSync("/dev/full", "w");
    const running = await start([full, full]);
    closeSync(full);
    for (const path of ["/log", "/console", "/log"]) assert.equal(await running.get(path), "served");
    await holds(running);
  });

  test("nobody reads its log and its output", async () => {
    const stdout = unreadPipe();
    const stderr = unreadPipe();
    const running = await start([stdout.fd, stderr.fd]);
    await flood(running.get, "/log");
    await flood(running.get, long);
    await holds(running);
  });

  test("its request log is on a full disk", async () => {
    const running = await start(["pipe", "pipe"], { MODHOST_HTTP_LOG_FILE: "/dev/full" });
    running.child.stdout?.resume();
    running.child.stderr?.resume();
    await running.get(long);
    await running.get("/");
    await holds(running);
  });

  test("its request log is a pipe that is read only later: lines that are missing are counted once", async () => {
    const pipe = unreadPipe();
    const running = await start(["pipe", "pipe"], { MODHOST_HTTP_LOG_FILE: pipe.path });
    running.child.stdout?.resume();
    let log = "";
    running.child.stderr?.on("data", (text) => (log += text));
    await flood(running.get, long);
    const room = Buffer.alloc(65_536);
    const drained = () => {
      try {
        return readSync(pipe.fd, room);
      } catch {
        return 0;
      }
    };
    await eventually("the number of dropped lines is logged", () => {
      drained();
      return log.includes("dropped");
    });
    assert.match(log, /Could not write the request log \(nothing reads the output.*\); dropped lines: \d+/);
    await running.get("/");
    await holds(running);
    assert.equal(log.split("dropped").length, 2, log);
  });
});
