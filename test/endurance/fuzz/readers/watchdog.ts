/** Ends this process when one input is read for ever, and says which: nothing on the loop could. */
import { writeSync } from "node:fs";
import { isMainThread, Worker, workerData } from "node:worker_threads";

/** Seconds for which a small input may be read, on a very busy machine. */
const MAX_SECONDS = 60;

interface Watched {
  /** One number: of the input that is read. */
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

  /** The input with this number is read from now on. */
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
