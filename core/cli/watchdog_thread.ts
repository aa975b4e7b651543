/** The program of the watchdog: this thread runs on while the main one stands still. */
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { stackOfMainThread } from "./held_stack.ts";
import type { WatchdogTask } from "./watchdog.ts";

const { beat, running, seconds, exits } = workerData as WatchdogTask;
/** Standard error: the main thread's own stream waits for its loop. */
const STDERR = 2;
/** As after SIGKILL, which is all that such a process still hears. */
const EXIT_CODE = 137;
/** For what the main thread runs: it tells at once, unless it waits for the system. */
const PATIENCE_MS = 1000;

const names = new Map<number, string>([[0, "no module's code, as far as is known"]]);
parentPort?.on("message", ([number, name]: [number, string]) => names.set(number, `code of the module ${name}`));

let last = Atomics.load(beat, 0);
let since = performance.now();
let isTold = false;

setInterval(
  () => {
    const now = Atomics.load(beat, 0);
    const still = (performance.now() - since) / 1000;
    if (now !== last) {
      if (isTold) tell(`the event loop runs again, after ${still.toFixed(1)} s`);
      last = now;
      since = performance.now();
      isTold = false;
      return;
    }
    if (isTold || still < seconds) return;
    isTold = true;
    const holder = names.get(Atomics.load(running, 0)) ?? "a module";
    tell(`the event loop has stood still for ${still.toFixed(1)} s, in ${holder}`);
    void tellMore();
  },
  (seconds / 4) * 1000,
);

/** Where it stands, and that the process ends, if it is to. */
async function tellMore(): Promise<void> {
  // Who debugs the main thread has stopped it, and would see it go on.
  const stack = Atomics.load(beat, 1) === 1 ? [] : await stackOfMainThread(PATIENCE_MS);
  if (stack.length > 0) tell(`it runs\n${stack.join("\n")}`);
  if (!exits) return;
  tell("the process ends, as the option loop_watchdog_exit says");
  process.kill(process.pid, "SIGKILL");
  process.exit(EXIT_CODE);
}

function tell(text: string): void {
  try {
    writeSync(STDERR, `modhost: ${text}\n`);
  } catch {} // Nobody reads it.
}
