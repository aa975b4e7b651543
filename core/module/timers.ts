import type { Timer } from "../types.ts";

/** The longest delay of a timer of the platform, milliseconds. */
const longestDelay = 2 ** 31 - 1;

export interface TimerCallbacks {
  /** Runs the author's function; a number that it gives is the delay of the next call, seconds. */
  run(now: number): unknown;
  fault(error: unknown): void;
  /** It will not fire again. */
  ended(): void;
}

/** A timer of a module: delays in seconds, of any length. Does not run before `start`. */
export class ModuleTimer implements Timer {
  readonly #callbacks: TimerCallbacks;
  #delay: number;
  /** Undefined while waiting to be started, while the function runs, and at the end. */
  #handle: NodeJS.Timeout | undefined;
  #state: "new" | "waiting" | "running" | "ended" = "new";
  /** Counts the calls of `reschedule`, so that a returned number does not overrule one made meanwhile. */
  #changes = 0;

  constructor(delay: number, callbacks: TimerCallbacks) {
    this.#delay = checked(delay);
    this.#callbacks = callbacks;
  }

  start(): void {
    if (this.#state === "new") this.#wait(this.#delay * 1000);
  }

  stop(): void {
    clearTimeout(this.#handle);
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#callbacks.ended();
  }

  reschedule(delay: number): void {
    this.#delay = checked(delay);
    this.#changes += 1;
    if (this.#state === "waiting") {
      clearTimeout(this.#handle);
      this.#wait(this.#delay * 1000);
    }
  }

  #wait(milliseconds: number): void {
    this.#state = "waiting";
    const part = Math.min(milliseconds, longestDelay);
    this.#handle = setTimeout(() => {
      if (part < milliseconds) this.#wait(milliseconds - part);
      else void this.#fire();
    }, part);
  }

  async #fire(): Promise<void> {
    this.#state = "running";
    const changes = this.#changes;
    let again = false;
    try {
      const next = await this.#callbacks.run(Date.now() / 1000);
      if (typeof next === "number") again = true;
      if (again && changes === this.#changes) this.#delay = checked(next as number);
    } catch (error) {
      again = false;
      this.#callbacks.fault(error);
    }
    // Stopped by itself, perhaps, while it ran.
    if ((this.#state as string) === "ended") return;
    if (again || changes !== this.#changes) this.#wait(this.#delay * 1000);
    else this.stop();
  }
}

function checked(delay: number): number {
  if (typeof delay === "number" && delay >= 0 && Number.isFinite(delay)) return delay;
  throw new TypeError(`A timer's delay is a number of seconds from 0, not ${String(delay)}`);
}
