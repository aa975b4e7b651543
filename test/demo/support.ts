/** Helpers of the demonstrations: they check the required ports, and start and stop a host. */
import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const project = fileURLToPath(new URL("../..", import.meta.url));
export const plain = "http://localhost:5280";
export const secure = "https://localhost:5281";

/** The guides and the README name these ports, so a demonstration cannot use others. */
export function requireCurlAndPorts(): void {
  if (spawnSync("curl", ["--version"]).error !== undefined)
    throw new Error("The demonstration needs curl: apt-get install curl");
  if (spawnSync("curl", ["-s", plain]).status !== 7 || spawnSync("curl", ["-sk", secure]).status !== 7)
    throw new Error("Another program listens on port 5280 or 5281: stop it first");
}

/** Resolves when the host reports that it is ready. */
export async function untilReady(host: ChildProcess): Promise<void> {
  for (let attempt = 0; spawnSync("curl", ["-sf", `${plain}/health/ready`]).status !== 0; attempt += 1) {
    if (attempt > 100 || host.exitCode !== null) throw new Error("The host does not respond on port 5280");
    await sleep(100);
  }
}

/** Sends SIGTERM if the host still runs. Resolves to its exit code. */
export async function ended(host: ChildProcess): Promise<number | null> {
  if (host.exitCode === null && host.signalCode === null) {
    const exit = once(host, "exit");
    host.kill("SIGTERM");
    await exit;
  }
  return host.exitCode;
}
