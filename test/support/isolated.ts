/** Programs in a network of their own: it can have any address, and nothing leaves it. */
import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const alone = ["--user", "--map-root-user", "--net"];
const tried = spawnSync("unshare", [...alone, "ip", "link", "show"]);

/** Why there is none here, to be given as `skip`; false where there is. */
export const noIsolation: string | false =
  tried.status === 0 ? false : "this system makes no network namespace (unshare, ip)";

/**
 * What a program printed, as JSON. `setup`: commands of the shell that make its network; without
 * them not even the loopback is up. Rejects when it fails or says anything on the error output.
 */
export async function isolated(program: URL, setup: readonly string[] = []): Promise<unknown> {
  const script = [...setup, 'exec "$0" --conditions=source "$1"'].join(" && ");
  const words = [...alone, "sh", "-c", script, process.execPath, fileURLToPath(program)];
  const { stdout, stderr } = await promisify(execFile)("unshare", words, { timeout: 200_000 });
  if (stderr !== "") throw new Error(stderr);
  return JSON.parse(stdout);
}

export const loopback = "ip link set lo up";
