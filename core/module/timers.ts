import type { Timer } from "../types.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Release } from "./ledger.ts";

export interface TimerCallbacks {
  /** Runs the author's function; a returned number is the delay of the next call in seconds. */
  run(now: number): unknown;
  fault(error: unknown): void;
  /** Called when the timer will not fire again. */
  ended(): void;
}

/** A timer of a module, with delays of any length in seconds. It does not run before `start`. */
export class ModuleTimer implements Timer {
  readonly #callbacks: TimerCallbacks;
  readonly #clock: Clock;
  #delay: number;
  /** Cancels the pending call of the clock. */
  #cancel: () => void = () => undefined;
  #state: "new" | "waiting" | "running" | "ended" = "new";
  /**
   * Counts the calls of `reschedule`, so that a returned number does not override a call made
   * meanwhile.
   */
  #changes = 0;

  constructor(delay: number, callbacks: TimerCallbacks, clock: Clock = systemClock) {
    this.#delay = checked(delay);
    this.#callbacks = callbacks;
    this.#clock = clock;
  }

  start(): void {
    if (this.#state === "new") this.#wait();
  }

  stop(): void {
    this.#cancel();
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#callbacks.ended();
  }

  reschedule(delay: number): void {
    this.#delay = checked(delay);
    this.#changes += 1;
    if (this.#state === "waiting") {
      this.#cancel();
      this.#wait();
    }
  }

  #wait(): void {
    this.#state = "waiting";
    this.#cancel = this.#clock.after(this.#delay, () => this.#fire());
  }

  async #fire(): Promise<void> {
    this.#state = "running";
    const changes = this.#changes;
    let again = false;
    try {
      const next = await this.#callbacks.run(this.#clock.now());
      if (typeof next === "number") again = true;
      if (again && changes === this.#changes) this.#delay = checked(next as number);
    } catch (error) {
      again = false;
      this.#callbacks.fault(error);
    }
    // The function may have stopped its own timer while it ran.
    if ((this.#state as string) === "ended") return;
    if (again || changes !== this.#changes) this.#wait();
    else this.stop();
  }
}

/** The timers of all modules of a host, on one clock. */
export class Timers {
  readonly #clock: Clock;
  /** Running timers with the names of their modules. */
  readonly #running = new Map<ModuleTimer, string>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  create(delay: number, callbacks: TimerCallbacks): ModuleTimer {
    const ended = () => {
      this.#running.delete(timer);
      callbacks.ended();
    };
    const timer = new ModuleTimer(delay, { ...callbacks, ended }, this.#clock);
    return timer;
  }

  start(timer: ModuleTimer, owner: string): Release {
    this.#running.set(timer, owner);
    timer.start();
    return () => timer.stop();
  }

  /** Returns one line for each running timer of a module. */
  ownedBy(owner: string): string[] {
    return [...this.#running.values()].filter((name) => name === owner).map(() => "timer");
  }
}

function checked(delay: number): number {
  if (typeof delay === "number" && delay >= 0 && Number.isFinite(delay)) return delay;
  throw new TypeError(`A timer's delay is a number of seconds from 0, not ${String(delay)}`);
}
