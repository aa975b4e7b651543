import type { Clock } from "../module/clock.ts";

/** The time of a test host. Only `module.add_timer` and `module.now` go by it; network timeouts stay real. */
export interface TestClock {
  /** Seconds since 1970. */
  now(): number;
  /**
   * Moves the time on by a number of seconds. Every timer that falls due on the way fires at its own moment, in order,
   * those set meanwhile too, and each is awaited before the next. Only for `clock: "manual"`.
   */
  advance(seconds: number): Promise<void>;
}

interface Call {
  /** Milliseconds since 1970. */
  readonly due: number;
  readonly run: () => Promise<void>;
}

/** Calls at one and the same moment, beyond which a timer must be asking for itself for ever. */
const MAX_CALLS_AT_ONCE = 10_000;

/** A clock that stands still until it is moved. It begins at the time of the system. */
export class ManualClock implements Clock, TestClock {
  /** In milliseconds, so that fractions of seconds add up. */
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
    if (this.#isMoving) throw new Error("The clock is being moved already: await clock.advance(), outside of timers");
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

  /** The earliest that is due by then; of equal ones the one that was set first. */
  #next(end: number): Call | undefined {
    let next: Call | undefined;
    for (const call of this.#calls) {
      if (call.due <= end && (next === undefined || call.due < next.due)) next = call;
    }
    return next;
  }
}

/** For hosts that go by the time of the system. */
export const realClock: TestClock = {
  now: () => Date.now() / 1000,
  advance: () => Promise.reject(new Error('This host goes by the real time: createTestHost({ clock: "manual" })')),
};
