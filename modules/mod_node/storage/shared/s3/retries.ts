/** When a request is sent again: what may pass, later each time, and never so many that they keep a busy store busy. */
import { setTimeout as sleep } from "node:timers/promises";
import { S3Fault } from "./faults.ts";

/** What a request that failed waits for is drawn between 0 and this, in milliseconds, which doubles each time up to the limit. */
const FIRST_WAIT = 50;
const LONGEST_WAIT = 5000;
const MAX_ATTEMPTS = 8;

/** Retries are at most this share of all requests, */
const SHARE = 0.2;
/** apart from so many that were saved up. */
const SAVED = 50;

export class Retries {
  /** Milliseconds. */
  readonly patience: number;
  #left = SAVED;

  /** `patience`: no attempt begins later than so many milliseconds after the first. */
  constructor(patience: number) {
    this.patience = patience;
  }

  /**
   * The result of the first attempt that succeeds. `attempt` may take place several times; `end`, by `performance.now()`, is when none
   * begins any more.
   *
   * @throws what the last attempt threw, or the reason of the signal
   */
  async run<T>(signal: AbortSignal | undefined, attempt: (number: number, end: number) => Promise<T>): Promise<T> {
    const end = performance.now() + this.patience;
    this.#left = Math.min(SAVED, this.#left + SHARE);
    for (let number = 1; ; number += 1) {
      signal?.throwIfAborted();
      try {
        return await attempt(number, end);
      } catch (error) {
        await this.pause(number, error, signal, end);
      }
    }
  }

  /** Waits before the next attempt after `failures` of them, which begins before `end`. @throws the error where there is to be none, or the reason of the signal */
  async pause(failures: number, error: unknown, signal: AbortSignal | undefined, end: number): Promise<void> {
    signal?.throwIfAborted();
    if (!(error instanceof S3Fault) || !error.passes || failures >= MAX_ATTEMPTS) throw error;
    const wait = waitAfter(failures, error.after);
    if (performance.now() + wait > end || this.#left < 1) throw error;
    this.#left -= 1;
    await sleep(wait, undefined, { signal }).catch(() => signal?.throwIfAborted());
  }
}

function waitAfter(failures: number, asked: number | undefined): number {
  return (asked ?? 0) + Math.random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (failures - 1));
}
