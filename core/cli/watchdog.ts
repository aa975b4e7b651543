/**
 * Watches the event loop from another thread, and reports which module blocks it when the main
 * thread cannot.
 */
import { Worker } from "node:worker_threads";
import { onNumbered, runningNow } from "../util/usage.ts";

export interface WatchdogOptions {
  /** Seconds for which the loop may be blocked. */
  readonly seconds: number;
  /** True: the process is then ended, so that its supervisor restarts it. */
  readonly exits: boolean;
}

/**
 * The data of the thread: a counter that the loop increments, and the number of the module whose
 * code runs.
 */
export interface WatchdogTask extends WatchdogOptions {
  /** The second number is 1 while a debugger may have paused the main thread. */
  readonly beat: Int32Array;
  readonly running: Int32Array;
}

const program = new URL(
  import.meta.url.endsWith(".ts") ? "./watchdog_thread.ts" : "./watchdog_thread.js",
  import.meta.url,
);

/**
 * Starts the watchdog; the returned function stops it. The thread starts with the first beat, a
 * quarter of the time from now, because it costs memory and a tenth of the CPU time of a start,
 * before the server has handled any request.
 */
export function watchLoop(options: WatchdogOptions): () => void {
  const beat = new Int32Array(new SharedArrayBuffer(8));
  let worker: Worker | undefined;
  const step = () => {
    Atomics.store(beat, 1, isInspected() ? 1 : 0);
    Atomics.add(beat, 0, 1);
    worker ??= watcher({ ...options, beat, running: runningNow });
  };
  const timer = setInterval(step, (options.seconds / 4) * 1000).unref();
  return () => {
    clearInterval(timer);
    onNumbered(() => undefined);
    void worker?.terminate();
  };
}

/**
 * Returns true if an inspector is open. Node's module is loaded with the first beat, like the
 * thread.
 */
const isInspected = () => process.getBuiltinModule("node:inspector").url() !== undefined;

function watcher(workerData: WatchdogTask): Worker {
  const worker = new Worker(program, { workerData, name: "watchdog" });
  worker.unref();
  worker.on("error", () => undefined);
  onNumbered((number, name) => worker.postMessage([number, name]));
  return worker;
}
