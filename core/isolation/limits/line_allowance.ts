/** Bounds the lines that a module adds to the log of the server. */
import type { ModuleLog } from "../../types.ts";
import { Bucket } from "../../util/rate_limit.ts";

/** Seconds whose lines a module may log at once. */
const BURST_SECONDS = 10;

/** Characters for which a line counts once: a long one counts as several. */
const LINE_CHARACTERS = 1024;

/** Milliseconds between two log lines about lines that were left out. */
const REPORT_MS = 5000;

export class LineAllowance {
  readonly #log: Pick<ModuleLog, "warn">;
  readonly #perSecond: number;
  readonly #lines: Bucket;
  #left = 0;
  #reported = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number, log: Pick<ModuleLog, "warn">) {
    this.#perSecond = perSecond;
    this.#log = log;
    this.#lines = new Bucket({ perSecond, burst: perSecond * BURST_SECONDS }, performance.now());
  }

  /**
   * Whether one more line of this many characters may be written. The first one that may not is
   * reported.
   */
  take(characters: number, now = performance.now()): boolean {
    if (this.#lines.take(now, Math.max(1, characters / LINE_CHARACTERS)) === 0) {
      this.report(now);
      return true;
    }
    if (this.#left === 0 && now - this.#reported > REPORT_MS) {
      this.#reported = now;
      this.#log.warn(
        "prints so much that lines are left out from now on: limits.log_lines allows %d a second",
        this.#perSecond,
      );
    }
    this.#left += 1;
    return false;
  }

  /** Reports how many lines were left out, not too often. */
  report(now = performance.now()): void {
    if (this.#left === 0 || now - this.#reported < REPORT_MS) return;
    this.#reported = now;
    this.#log.warn("Left out lines of its output (limits.log_lines): %d", this.#left);
    this.#left = 0;
  }
}
