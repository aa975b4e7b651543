/**
 * Decides when a failed request is sent again. Only temporary faults are retried, with growing
 * delays. The number of retries is limited, so that they do not overload a busy store.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { S3Fault } from "./faults.ts";

/**
 * Maximum milliseconds of the first delay. The delay is random between 0 and a maximum that doubles
 * with each failure, up to `LONGEST_WAIT`.
 */
const FIRST_WAIT = 50;
const LONGEST_WAIT = 5000;
const MAX_ATTEMPTS = 8;

/** Retries are at most this share of all requests. */
const SHARE = 0.2;
/** Retries that can be saved up in addition. */
const SAVED = 50;

export class Retries {
  /** Milliseconds after the first attempt during which another attempt may begin. */
  readonly patience: number;
  #left = SAVED;

  /** `patience`: milliseconds after the first attempt during which another attempt may begin. */
  constructor(patience: number) {
    this.patience = patience;
  }

  /**
   * Returns the result of the first attempt that succeeds. `attempt` may be called several times.
   * `end`, in the time of `performance.now()`, is the time after which no attempt begins.
   *
   * @throws the error of the last attempt, or the reason of the signal
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

  /**
   * Waits before the next attempt after `failures` failed ones.
   * @throws the error when no attempt may follow, or the reason of the signal
   */
  async pause(failures: number, error: unknown, signal: AbortSignal | undefined, end: number): Promise<void> {
    signal?.throwIfAborted();
    if (!(error instanceof S3Fault) || !error.isTemporary || failures >= MAX_ATTEMPTS) throw error;
    const wait = waitAfter(failures, error.after);
    if (performance.now() + wait > end || this.#left < 1) throw error;
    this.#left -= 1;
    await sleep(wait, undefined, { signal }).catch(() => signal?.throwIfAborted());
  }
}

function waitAfter(failures: number, requestedMs: number | undefined): number {
  return (requestedMs ?? 0) + Math.random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (failures - 1));
}
