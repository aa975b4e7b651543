/**
 * Runs programs in a network namespace of their own, which can have any address and reaches nothing
 * outside.
 */
import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const alone = ["--user", "--map-root-user", "--net"];
const tried = spawnSync("unshare", [...alone, "ip", "link", "show"]);

/** The reason to skip tests that need a namespace, for `skip`; false if it can be made. */
export const noIsolation: string | false =
  tried.status === 0 ? false : "this system cannot make a network namespace (unshare, ip)";

/**
 * Runs a program and returns its output, parsed as JSON. `setup`: shell commands that configure the
 * network; without them not even the loopback is up. Rejects if the program fails or writes to
 * stderr.
 */
export async function isolated(program: URL, setup: readonly string[] = []): Promise<unknown> {
  const script = [...setup, 'exec "$0" --conditions=source "$1"'].join(" && ");
  const words = [...alone, "sh", "-c", script, process.execPath, fileURLToPath(program)];
  const { stdout, stderr } = await promisify(execFile)("unshare", words, { timeout: 200_000 });
  if (stderr !== "") throw new Error(stderr);
  return JSON.parse(stdout);
}

export const loopback = "ip link set lo up";
