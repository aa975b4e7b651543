/**
 * Counts calls that change files and do not flush: Kubo refuses them when they are many, clients of
 * it flush then.
 */
import { failure } from "../../util/errors.ts";

export class UnflushedCalls {
  #count = 0;

  /**
   * To be called before a change. With a limit above 0 it is refused when so many before it were
   * not flushed. @throws NodeError
   */
  add(flush: boolean, limit: number): void {
    if (flush) this.#count = 0;
    else if (limit > 0 && this.#count >= limit) {
      throw failure("FILES_UNFLUSHED", { limit });
    } else this.#count += 1;
  }

  /** Everything was flushed. */
  reset(): void {
    this.#count = 0;
  }
}
