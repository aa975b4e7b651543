/**
 * Holds a process group to a share of the processor. It may save up some time; after that it is
 * paused until it may go on.
 */

/** Seconds of the share that it may save up. */
const SAVED_SECONDS = 2;

/** Milliseconds of a pause at most: pings and requests wait so long. */
const MAX_PAUSE_MS = 1000;

export class CpuBudget {
  readonly #cores: number;
  #left: number;
  #at = performance.now();
  #paused: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(cores: number) {
    this.#cores = cores;
    this.#left = cores * SAVED_SECONDS;
  }

  /** Whether little is left: the shorter the looks are then, the shorter are the pauses. */
  get isTight(): boolean {
    return this.#left < (this.#cores * SAVED_SECONDS) / 10;
  }

  /** Whether the group has used more than its share. */
  get isExhausted(): boolean {
    return this.#left < 0;
  }

  /**
   * Counts seconds of processor time that the group has used, and pauses it if that is too much.
   */
  spend(spent: number, group: number): void {
    const now = performance.now();
    const most = this.#cores * SAVED_SECONDS;
    // A debt is bounded as well, so that no pause is longer than that.
    const left = this.#left + ((now - this.#at) / 1000) * this.#cores - spent;
    this.#left = Math.max(-most, Math.min(most, left));
    this.#at = now;
    if (this.#left < 0) this.#pause(group);
  }

  /** Lets the group go on, for good. */
  stop(): void {
    this.#resume();
  }

  #pause(group: number): void {
    if (this.#paused !== undefined || !signal(group, "SIGSTOP")) return;
    this.#paused = group;
    const ms = Math.min(MAX_PAUSE_MS, (-this.#left / this.#cores) * 1000);
    this.#timer = setTimeout(() => this.#resume(), ms);
  }

  #resume(): void {
    clearTimeout(this.#timer);
    if (this.#paused !== undefined) signal(this.#paused, "SIGCONT");
    this.#paused = undefined;
  }
}

/** Sends a signal to a process group. Returns false if it has ended. */
function signal(group: number, name: "SIGSTOP" | "SIGCONT"): boolean {
  // 0 and 1 would stand for the own group and for every process.
  if (group <= 1) return false;
  try {
    process.kill(-group, name);
    return true;
  } catch {
    return false;
  }
}
