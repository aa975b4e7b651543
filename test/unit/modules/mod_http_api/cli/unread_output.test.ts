/**
 * If nothing reads the daemon's output, or the disk is full, the daemon keeps serving, and stops on
 * a signal.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { call, ownProgram, Sandbox, urlOf } from "./support.ts";

for (const [what, streams] of [
  ["a pipe that nobody reads and a full disk", ["unread", "/dev/full"]],
  ["a full disk and a pipe that nobody reads", ["/dev/full", "unread"]],
  ["pipes whose readers have left", ["left", "left"]],
] as const) {
  test(`the daemon serves while its output and its log are ${what}`, async () => {
    await using sandbox = await Sandbox.withRepo();
    const opened = streams.map((name, at) => {
      if (name === "left") return "pipe";
      const path = name === "unread" ? join(sandbox.folder, `pipe${at}`) : name;
      if (name === "unread") execFileSync("mkfifo", [path]);
      return openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    });
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    const child = spawn(process.execPath, [ownProgram, "daemon", "--offline"], {
      env: { ...inherited, IPFS_PATH: sandbox.repo, GOLOG_LOG_LEVEL: "debug" },
      stdio: ["ignore", ...opened],
    });
    child.stdout?.destroy();
    child.stderr?.destroy();
    const ended = once(child, "exit");
    try {
      while ((await sandbox.api()) === undefined) {
        assert.equal(child.exitCode, null, "it has ended instead of serving");
        await wait(50);
      }
      const url = urlOf(await sandbox.api());
      for (let at = 0; at < 20; at += 1) assert.equal((await call(url, "id")).status, 200);
      child.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null]);
    } finally {
      child.kill("SIGKILL");
      for (const fd of opened) if (typeof fd === "number") closeSync(fd);
    }
  });
}
