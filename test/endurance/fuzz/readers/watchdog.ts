/**
 * Ends this process if one input is read forever, and prints its number. A blocked event loop could
 * not do that.
 */
import { writeSync } from "node:fs";
import { isMainThread, Worker, workerData } from "node:worker_threads";

/** Seconds that reading a small input may take on a very busy machine. */
const MAX_SECONDS = 60;

interface Watched {
  /** One number: that of the current input. */
  readonly current: Float64Array;
  readonly seconds: number;
}

export class Watchdog {
  readonly #current = new Float64Array(new SharedArrayBuffer(8));
  readonly #worker: Worker;

  constructor(seconds = MAX_SECONDS) {
    const watched: Watched = { current: this.#current, seconds };
    this.#worker = new Worker(new URL(import.meta.url), { workerData: watched, execArgv: [] });
    this.#worker.unref();
  }

  /** Declares that the input with this number is being read from now on. */
  mark(number: number): void {
    this.#current[0] = number;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

function watch({ current, seconds }: Watched): void {
  let last = current[0];
  let since = performance.now();
  setInterval(() => {
    const number = current[0];
    if (number !== last) {
      last = number;
      since = performance.now();
    }
    if (performance.now() - since < seconds * 1000) return;
    writeSync(1, `FAILED readers: input ${number} is read for more than ${seconds} s\n`);
    process.kill(process.pid, "SIGKILL");
  }, 100);
}

if (!isMainThread) watch(workerData as Watched);
