import type { Clock } from "../module/clock.ts";

/**
 * The clock of a test host. Only `module.add_timer` and `module.now` use it; network timeouts use
 * the real time.
 */
export interface TestClock {
  /** Returns the seconds since 1970. */
  now(): number;
  /**
   * Moves the clock forward by a number of seconds. Every timer that becomes due on the way fires
   * at its own moment, in order, including those that are set meanwhile, and each is awaited before
   * the next. Only for `clock: "manual"`.
   */
  advance(seconds: number): Promise<void>;
}

interface Call {
  /** Milliseconds since 1970. */
  readonly due: number;
  readonly run: () => Promise<void>;
}

/**
 * Maximum number of calls at the same moment; a timer that needs more reschedules itself for ever.
 */
const MAX_CALLS_AT_ONCE = 10_000;

/** A clock that stands still until it is moved. It starts at the system time. */
export class ManualClock implements Clock, TestClock {
  /** The time in milliseconds, so that fractions of seconds add up exactly. */
  #now = Date.now();
  readonly #calls = new Set<Call>();
  #isMoving = false;

  now(): number {
    return this.#now / 1000;
  }

  after(delay: number, run: () => Promise<void>): () => void {
    const call: Call = { due: this.#now + Math.round(delay * 1000), run };
    this.#calls.add(call);
    return () => this.#calls.delete(call);
  }

  async advance(seconds: number): Promise<void> {
    if (!(seconds >= 0 && Number.isFinite(seconds))) {
      throw new TypeError(`clock.advance takes a number of seconds from 0, not ${String(seconds)}`);
    }
    if (this.#isMoving) throw new Error("The clock is already advancing: await clock.advance(), outside of timers");
    this.#isMoving = true;
    try {
      await this.#moveTo(this.#now + Math.round(seconds * 1000));
    } finally {
      this.#isMoving = false;
    }
  }

  async #moveTo(end: number): Promise<void> {
    let count = 0;
    for (let call = this.#next(end); call !== undefined; call = this.#next(end)) {
      count = call.due > this.#now ? 1 : count + 1;
      if (count > MAX_CALLS_AT_ONCE)
        throw new Error(`Timers fired ${MAX_CALLS_AT_ONCE} times at one moment: one always returns 0`);
      this.#calls.delete(call);
      this.#now = Math.max(this.#now, call.due);
      await call.run();
    }
    this.#now = end;
  }

  /** Returns the earliest call that is due by then; of equal ones, the one that was set first. */
  #next(end: number): Call | undefined {
    let next: Call | undefined;
    for (const call of this.#calls) {
      if (call.due <= end && (next === undefined || call.due < next.due)) next = call;
    }
    return next;
  }
}

/** The clock for hosts that use the system time. */
export const realClock: TestClock = {
  now: () => Date.now() / 1000,
  advance: () => Promise.reject(new Error('This host uses real time: createTestHost({ clock: "manual" })')),
};
