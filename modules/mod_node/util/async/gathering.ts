/** Runs one piece of work for all callers that request it at about the same time. */

/** Milliseconds that the first request waits at most, however many others follow. */
const LONGEST_MS = 2;

/**
 * Calls `begin` after a turn of the event loop without a further request. A group commit, for
 * example, costs a thread and the disk the same for one caller as for many, so concurrent callers
 * share it. A single caller waits for one turn only.
 */
export class Gathering {
  readonly #begin: () => void;
  #turn: NodeJS.Immediate | undefined;
  /** Whether a request has come since the last turn. */
  #hasNewRequest = false;
  #until = 0;

  constructor(begin: () => void) {
    this.#begin = begin;
  }

  request(): void {
    this.#hasNewRequest = true;
    if (this.#turn !== undefined) return;
    this.#until = performance.now() + LONGEST_MS;
    this.#next();
  }

  /** Drops the pending requests: `begin` is not called for them. */
  stop(): void {
    clearImmediate(this.#turn);
    this.#turn = undefined;
  }

  #next(): void {
    this.#turn = setImmediate(() => {
      if (this.#hasNewRequest && performance.now() < this.#until) {
        this.#hasNewRequest = false;
        this.#next();
        return;
      }
      this.#turn = undefined;
      this.#begin();
    });
  }
}
