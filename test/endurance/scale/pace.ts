/**
 * Whether the database answers as soon as hosts need it, as this process sees it: on a machine that
 * is too busy it may not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";

const EVERY_MS = 100;
const ASK_MS = 60_000;
/** Half of what a host gives a look at the log. */
const SLOW_MS = 1000;

export class Pace implements Disposable {
  readonly #line: SqlConnection;
  readonly #over = new AbortController();
  /**
   * When the question that has no answer yet was to be asked, and the last answer that came too
   * late.
   */
  #asked = performance.now();
  #slowUntil = Number.NEGATIVE_INFINITY;
  /** Milliseconds of the slowest answer. */
  slowest = 0;

  constructor(sql: string) {
    this.#line = new SqlConnection(sqlSettings(sql), { name: "pace", counts: new SqlCounts() });
    void this.#ask();
  }

  /** Whether anything that began then met a database that took a second and more. */
  wasSlowSince(begin: number): boolean {
    return this.#slowUntil >= begin || performance.now() - this.#asked >= SLOW_MS;
  }

  [Symbol.dispose](): void {
    this.#over.abort();
    this.#line.close();
  }

  async #ask(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      this.#asked = performance.now();
      // While it is away it is slow.
      await this.#line.run((sql) => sql`select 1`, ASK_MS).catch(() => {});
      await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
      const took = performance.now() - this.#asked - EVERY_MS;
      this.slowest = Math.max(this.slowest, took);
      if (took >= SLOW_MS) this.#slowUntil = performance.now();
    }
  }
}
