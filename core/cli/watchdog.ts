/** Watches the event loop from another thread: says which module holds it up, where that module can no longer say so. */
import { Worker } from "node:worker_threads";
import { onNumbered, runningNow } from "../util/usage.ts";

export interface WatchdogOptions {
  /** The loop may stand still for so many seconds. */
  readonly seconds: number;
  /** True: the process is ended then, so that whoever supervises it starts it again. */
  readonly exits: boolean;
}

/** What the thread is started with: a beat that the loop counts up, and the number of the module whose code runs. */
export interface WatchdogTask extends WatchdogOptions {
  /** The second number is 1 while a debugger may hold the main thread. */
  readonly beat: Int32Array;
  readonly running: Int32Array;
}

const program = new URL(
  import.meta.url.endsWith(".ts") ? "./watchdog_thread.ts" : "./watchdog_thread.js",
  import.meta.url,
);

/**
 * Gives what ends it. The thread is started with the first beat, a quarter of the time from now: it costs as much CPU time as a
 * tenth of a start, and memory, before a server has answered anything.
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

/** An inspector is open. Node's module is loaded with the first beat, as the thread is. */
const isInspected = () => process.getBuiltinModule("node:inspector").url() !== undefined;

function watcher(workerData: WatchdogTask): Worker {
  const worker = new Worker(program, { workerData, name: "watchdog" });
  worker.unref();
  worker.on("error", () => undefined);
  onNumbered((number, name) => worker.postMessage([number, name]));
  return worker;
}
