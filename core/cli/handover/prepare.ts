/** What has to hold before a server is handed over to another process. Until then nothing of it has changed. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Host } from "../../host.ts";
import type { Progress } from "../../operations/change.ts";
import type { Successor } from "../../types.ts";
import { httpOf } from "../hosted.ts";
import type { Checked } from "./messages.ts";
import type { SuccessorProcess } from "./successor.ts";

/** Seconds for which requests that last are waited for, unless another time is asked for. */
const WAIT = 60;

/** Seconds after which a request lasts. Those that have taken less are finished while new connections wait. */
const LASTING = 1;

/** Clients that use a connection so often leave it by themselves: it is closed with an answer, milliseconds. */
const LEAVE_MS = 1000;
const LOOK_MS = 50;

/** Requests that are named when they are in the way. */
const MAX_NAMED = 5;

/**
 * Waits until the other process has loaded everything, and until no request is left that would be cut, or would keep new
 * connections waiting. Everything is served meanwhile.
 * @throws {Error} why the server cannot be handed over
 */
export async function prepare(
  host: Host,
  successor: SuccessorProcess,
  { wait = WAIT }: Successor,
  progress: Pick<Progress, "step">,
): Promise<void> {
  const checked = await successor.checked();
  assertFits(host, checked);
  progress.step(`process ${successor.pid} has loaded everything, version ${checked.version}`);
  await untilShort(host, successor, wait);
  progress.step("what lasted has ended");
}

/** @throws {Error} for a process that would serve less, or from another folder */
function assertFits(host: Host, { data, failed }: Checked): void {
  const own = String(host.config.value("data_path"));
  if (data !== own) throw new Error(`the other process keeps its data in ${data}, and this one in ${own}`);
  const loaded = new Set(host.modules().flatMap(({ name, status }) => (status === "loaded" ? [name] : [])));
  const [lost] = failed.filter(({ name }) => loaded.has(name));
  if (lost !== undefined) throw new Error(`the module ${lost.name} does not load there: ${lost.note}`);
}

async function untilShort(host: Host, successor: SuccessorProcess, wait: number): Promise<void> {
  const http = httpOf(host);
  const until = performance.now() + wait * 1000;
  const stay = http?.leave();
  try {
    await sleep(LEAVE_MS);
    for (;;) {
      successor.assertAlive();
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
  const remedy = "wait longer by --wait SECONDS, or have what lasts cut after unload_grace by --wait 0";
  return `${named} did not end within ${wait} s; ${remedy}`;
}
