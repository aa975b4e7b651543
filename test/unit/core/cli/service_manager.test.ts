/** The notifications that systemd gets from the server. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceManager } from "#core/cli/service_manager.ts";

/** Collects the messages that would be sent. */
function recordingManager(env: NodeJS.ProcessEnv = {}, isFailing = false) {
  const messages: string[][] = [];
  const failures: string[] = [];
  const manager = new ServiceManager({
    env: { NOTIFY_SOCKET: "/run/systemd/notify", ...env },
    failed: (reason) => failures.push(reason),
    send: async (assignments) => {
      messages.push([...assignments]);
      if (isFailing) throw new Error("there is no systemd-notify");
    },
    now: () => 7_000_000n,
  });
  return { manager, messages, failures };
}

describe("the service manager", () => {
  test("is notified of readiness, reloads and the stop, in this order, each in one line", async () => {
    const { manager, messages } = recordingManager();
    void manager.ready("Serving 2 apps\non port 80");
    void manager.reloading("Applying the configuration");
    void manager.stopping("Stopping");
    await manager.close();
    assert.deepEqual(messages, [
      ["READY=1", `MAINPID=${process.pid}`, "STATUS=Serving 2 apps on port 80"],
      ["RELOADING=1", "MONOTONIC_USEC=7000000", "STATUS=Applying the configuration"],
      ["STOPPING=1", "STATUS=Stopping"],
    ]);
  });

  test("gets no message if none is configured", async () => {
    const { manager, messages } = recordingManager({ NOTIFY_SOCKET: undefined, WATCHDOG_USEC: "2000" });
    await manager.ready("");
    await sleep(10);
    await manager.close();
    assert.deepEqual(messages, []);
  });

  test("gets watchdog messages after readiness, unless its watchdog is for another process", async () => {
    const mine = recordingManager({ WATCHDOG_USEC: "2000" });
    const other = recordingManager({ WATCHDOG_USEC: "2000", WATCHDOG_PID: "1" });
    await Promise.all([mine.manager.ready(""), other.manager.ready("")]);
    while (mine.messages.length < 4) await sleep(1);
    // A blocked event loop sends no message.
    const before = mine.messages.length;
    for (const until = performance.now() + 20; performance.now() < until; );
    assert.equal(mine.messages.length, before);
    await Promise.all([mine.manager.close(), other.manager.close()]);
    assert.deepEqual(new Set(mine.messages.slice(1).flat()), new Set(["WATCHDOG=1"]));
    assert.equal(other.messages.length, 1);
  });

  test("that cannot be reached causes one line in the log", async () => {
    const { manager, failures } = recordingManager({}, true);
    await manager.ready("");
    await manager.stopping("");
    assert.deepEqual(failures, ["there is no systemd-notify"]);
  });
});

/**
 * Prints each datagram that arrives at a socket, as JSON. It closes a barrier, as systemd does once
 * it has read everything before it.
 */
const receiver = `import json, os, socket, sys
found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
found.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
found.bind(sys.argv[1])
print("ready", flush=True)
while True:
    data, fds, *_ = socket.recv_fds(found, 4096, 4)
    for fd in fds: os.close(fd)
    if data != b"BARRIER=1": print(json.dumps(data.decode().split("\\n")), flush=True)`;

const has = (program: string) => spawnSync(program, ["--version"]).status === 0;
const skip =
  has("python3") && has("systemd-notify") ? false : "needs systemd-notify, and python3 to receive its datagrams";

test("systemd-notify sends the notifications", { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-notify-"));
  const path = join(folder, "notify");
  const child = spawn("python3", ["-c", receiver, path], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, "ready");
    const failures: string[] = [];
    const env = { PATH: process.env.PATH, NOTIFY_SOCKET: path };
    const manager = new ServiceManager({ env, failed: (reason) => failures.push(reason) });
    void manager.ready("Serving");
    assert.deepEqual(JSON.parse(String((await lines.next()).value)), [
      "READY=1",
      `MAINPID=${process.pid}`,
      "STATUS=Serving",
    ]);
    void manager.reloading("Applying");
    const [state, at, status] = JSON.parse(String((await lines.next()).value));
    assert.deepEqual([state, status], ["RELOADING=1", "STATUS=Applying"]);
    // The manager's clock: the time since the machine started.
    assert.ok(Number(at.split("=")[1]) <= Number(process.hrtime.bigint() / 1000n));
  } finally {
    child.kill();
    await once(child, "exit");
    await rm(folder, { recursive: true });
  }
});
