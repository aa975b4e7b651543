/** Measures how long work blocks the event loop at once. */

/** Maximum milliseconds of CPU time for which external input may block the event loop. */
export const MAX_TURN_MS = 50;

/** Returns the CPU time of this thread in milliseconds: the load of the machine does not count. */
export function cpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Measures every turn of the event loop until it is stopped. */
export class LoopMeter {
  #longest = 0;
  #last = cpuTime();
  #running = true;

  constructor() {
    this.#tick();
  }

  #tick(): void {
    setImmediate(() => {
      this.#mark();
      if (this.#running) this.#tick();
    });
  }

  #mark(): void {
    const now = cpuTime();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }

  /** Returns the longest turn since the last call in milliseconds of CPU time. */
  take(): number {
    this.#mark();
    const longest = this.#longest;
    this.#longest = 0;
    return longest;
  }

  stop(): void {
    this.#running = false;
  }
}

/**
 * Returns the longest turn of some work in milliseconds of CPU time. Errors of the work are
 * ignored. The shortest of `times` runs counts: the first runs are slower, because the code is
 * compiled meanwhile, and some include a garbage collection.
 */
export async function longestTurn(work: () => unknown, times = 3, enough = 0): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY;
  for (let left = times; left > 0 && shortest > enough; left -= 1) {
    const meter = new LoopMeter();
    await new Promise(setImmediate);
    meter.take();
    try {
      await work();
    } catch {}
    await new Promise(setImmediate);
    shortest = Math.min(shortest, meter.take());
    meter.stop();
    await new Promise(setImmediate);
  }
  return shortest;
}

let fastest = Number.POSITIVE_INFINITY;

/**
 * Returns how much longer the same work takes now than in its fastest run so far, in CPU time: on a
 * busy machine cores share caches, and threads share a core.
 */
export function slowdown(): number {
  const before = cpuTime();
  const parts: object[] = [];
  for (let at = 0; at < 200_000; at += 1) parts.push({ at, text: String(at) });
  Buffer.from(JSON.stringify(parts));
  const took = cpuTime() - before;
  fastest = Math.min(fastest, took);
  return took / fastest;
}
