/**
 * Limits the number of regions that are announced concurrently: some workers are reserved for
 * scheduled regions, some for new keys, and the others serve both.
 */

export type WorkKind = "periodic" | "burst";

export interface WorkerLimits {
  readonly max: number;
  readonly dedicated: Readonly<Record<WorkKind, number>>;
}

export class Workers {
  readonly #limits: () => WorkerLimits;
  readonly active: Record<WorkKind, number> = { periodic: 0, burst: 0 };
  /** Work that waits for a free worker, by kind. */
  readonly #waiting: Record<WorkKind, (() => void)[]> = { periodic: [], burst: [] };

  constructor(limits: () => WorkerLimits) {
    this.#limits = limits;
  }

  queued(kind: WorkKind): number {
    return this.#waiting[kind].length;
  }

  /**
   * Runs the work as soon as a worker is free. @throws the reason of the signal, and what the work
   * throws
   */
  async run<T>(kind: WorkKind, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    while (!this.hasFreeWorker(kind)) await this.#freeWorker(kind, signal);
    this.active[kind] += 1;
    try {
      return await work();
    } finally {
      this.active[kind] -= 1;
      for (const other of ["burst", "periodic"] as const) this.#waiting[other][0]?.();
    }
  }

  /**
   * Resolves when a worker may have become free; the caller checks again. @throws the reason of the
   * signal
   */
  async #freeWorker(kind: WorkKind, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const waiting = this.#waiting[kind];
    waiting.push(wake);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    signal.removeEventListener("abort", wake);
    waiting.splice(waiting.indexOf(wake), 1);
    signal.throwIfAborted();
  }

  hasFreeWorker(kind: WorkKind): boolean {
    const { max, dedicated } = this.#limits();
    const other = kind === "burst" ? "periodic" : "burst";
    const reserved = Math.max(0, dedicated[other] - this.active[other]);
    return max - this.active.periodic - this.active.burst - reserved > 0;
  }
}
