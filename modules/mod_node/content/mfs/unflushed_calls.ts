/**
 * Counts calls that change files without a flush. Kubo rejects such calls beyond a limit, so that
 * clients flush.
 */
import { failure } from "../../util/errors.ts";

export class UnflushedCalls {
  #count = 0;

  /**
   * To be called before a change. Rejects the change if `limit` changes before it were not flushed;
   * a limit of 0 means no limit. @throws NodeError
   */
  add(flush: boolean, limit: number): void {
    if (flush) this.#count = 0;
    else if (limit > 0 && this.#count >= limit) {
      throw failure("FILES_UNFLUSHED", { limit });
    } else this.#count += 1;
  }

  /** To be called when everything was flushed. */
  reset(): void {
    this.#count = 0;
  }
}
