/** Regions that are announced at a time: some places are for those whose turn it is, some for new keys, the others for both. */

export type WorkKind = "periodic" | "burst";

export interface WorkPlaces {
  readonly max: number;
  readonly dedicated: Readonly<Record<WorkKind, number>>;
}

export class Workers {
  readonly #places: () => WorkPlaces;
  readonly active: Record<WorkKind, number> = { periodic: 0, burst: 0 };
  /** Work that waits for a place, by kind. */
  readonly #waiting: Record<WorkKind, (() => void)[]> = { periodic: [], burst: [] };

  constructor(places: () => WorkPlaces) {
    this.#places = places;
  }

  queued(kind: WorkKind): number {
    return this.#waiting[kind].length;
  }

  /** Runs the work when there is a place. @throws the reason of the signal, and what the work throws */
  async run<T>(kind: WorkKind, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    while (!this.hasPlace(kind)) await this.#place(kind, signal);
    this.active[kind] += 1;
    try {
      return await work();
    } finally {
      this.active[kind] -= 1;
      for (const other of ["burst", "periodic"] as const) this.#waiting[other][0]?.();
    }
  }

  /** Resolves when a place may have become free: the caller looks again. @throws the reason of the signal */
  async #place(kind: WorkKind, signal: AbortSignal): Promise<void> {
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

  hasPlace(kind: WorkKind): boolean {
    const { max, dedicated } = this.#places();
    const other = kind === "burst" ? "periodic" : "burst";
    const kept = Math.max(0, dedicated[other] - this.active[other]);
    return max - this.active.periodic - this.active.burst - kept > 0;
  }
}
