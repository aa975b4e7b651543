/**
 * Waits until a server can be handed over to another process. The server does not change until
 * then.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { httpOf } from "../../host/http_module.ts";
import type { Host } from "../../host.ts";
import { assertNotEmptied } from "../../operations/apply.ts";
import type { Progress } from "../../operations/change.ts";
import type { NextServerProcess } from "../../types.ts";
import { assertNoneLost, type Checked, loadedIn } from "./messages.ts";
import type { NextProcess } from "./next_process.ts";

/** Default number of seconds to wait for long requests. */
const WAIT = 60;

/**
 * Seconds after which a request counts as long. Shorter ones are finished while new connections
 * wait.
 */
const LASTING = 1;

/**
 * Milliseconds for active clients to open new connections: each old one is closed with its next
 * response.
 */
const LEAVE_MS = 1000;
const LOOK_MS = 50;

/** Maximum number of requests that an error names. */
const MAX_NAMED = 5;

/**
 * Waits until the other process has loaded everything and no long request is left. A long request
 * would be cut, or would keep new connections waiting. Everything is served meanwhile.
 * @throws {Error} why the server cannot be handed over
 */
export async function prepare(
  host: Host,
  next: NextProcess,
  { wait = WAIT }: NextServerProcess,
  progress: Pick<Progress, "step">,
): Promise<void> {
  const checked = await next.checked();
  assertFits(host, checked);
  progress.step(`process ${next.pid} has loaded everything, version ${checked.version}`);
  await untilShort(host, next, wait);
  progress.step("no long request is left");
}

/**
 * Checks the report of the other process.
 * @throws {Error} if a loaded module has failed there, the data folder is another one, or the
 * config file has become empty
 */
function assertFits(host: Host, { data, config, failed }: Checked): void {
  assertNotEmptied(config, host.config);
  const own = String(host.config.value("data_path"));
  if (data !== own) throw new Error(`the other process stores its data in ${data}, and this one in ${own}`);
  assertNoneLost(failed, loadedIn(host));
}

async function untilShort(host: Host, next: NextProcess, wait: number): Promise<void> {
  const http = httpOf(host);
  const until = performance.now() + wait * 1000;
  const stay = http?.leave();
  try {
    await sleep(LEAVE_MS);
    for (;;) {
      next.assertAlive();
      const left = wait === 0 ? [] : (http?.lasting(LASTING) ?? []);
      if (left.length === 0) return;
      if (performance.now() > until) throw new Error(unfinished(left, wait));
      await sleep(LOOK_MS);
    }
  } catch (error) {
    stay?.();
    throw error;
  }
}

function unfinished(left: readonly string[], wait: number): string {
  const named =
    left.slice(0, MAX_NAMED).join(", ") + (left.length > MAX_NAMED ? ` and ${left.length - MAX_NAMED} more` : "");
  const remedy = "wait longer by --wait SECONDS, or cut long requests after unload_grace by --wait 0";
  return `${named} did not end within ${wait} s; ${remedy}`;
}
