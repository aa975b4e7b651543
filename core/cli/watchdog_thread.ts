/** The program of the watchdog thread, which keeps running while the main thread is blocked. */
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { stackOfMainThread } from "./main_thread_stack.ts";
import type { WatchdogTask } from "./watchdog.ts";

const { beat, running, seconds, exits } = workerData as WatchdogTask;
/** Standard error: the main thread's own stream waits for its loop. */
const STDERR = 2;
/** The exit code after SIGKILL, the only signal that such a process still handles. */
const EXIT_CODE = 137;
/**
 * Milliseconds to wait for the stack of the main thread. It responds at once, unless it waits for
 * the system.
 */
const PATIENCE_MS = 1000;

const names = new Map<number, string>([[0, "code of no known module"]]);
parentPort?.on("message", ([number, name]: [number, string]) => names.set(number, `code of the module ${name}`));

let last = Atomics.load(beat, 0);
let since = performance.now();
let isReported = false;

setInterval(
  () => {
    const now = Atomics.load(beat, 0);
    const still = (performance.now() - since) / 1000;
    if (now !== last) {
      if (isReported) report(`the event loop runs again, after ${still.toFixed(1)} s`);
      last = now;
      since = performance.now();
      isReported = false;
      return;
    }
    if (isReported || still < seconds) return;
    isReported = true;
    const holder = names.get(Atomics.load(running, 0)) ?? "a module";
    report(`the event loop has been blocked for ${still.toFixed(1)} s, in ${holder}`);
    void reportStack();
  },
  (seconds / 4) * 1000,
);

/** Reports the stack, and that the process will end if that is configured. */
async function reportStack(): Promise<void> {
  // A debugger that has paused the main thread would see it continue.
  const stack = Atomics.load(beat, 1) === 1 ? [] : await stackOfMainThread(PATIENCE_MS);
  if (stack.length > 0) report(`it runs\n${stack.join("\n")}`);
  if (!exits) return;
  report("the process ends, as the option loop_watchdog_exit says");
  process.kill(process.pid, "SIGKILL");
  process.exit(EXIT_CODE);
}

function report(text: string): void {
  try {
    writeSync(STDERR, `modhost: ${text}\n`);
  } catch {} // Nobody reads the standard error.
}
