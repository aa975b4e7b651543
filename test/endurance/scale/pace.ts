/**
 * Measures from this process whether the database responds as soon as hosts need it. On a machine
 * that is too busy it may not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";

const EVERY_MS = 100;
const ASK_MS = 60_000;
/** Half of the timeout of a host's look at the log. */
const SLOW_MS = 1000;

export class Pace implements Disposable {
  readonly #line: SqlConnection;
  readonly #over = new AbortController();
  /** When the pending query was due, and when the last late response arrived. */
  #due = performance.now();
  #slowUntil = Number.NEGATIVE_INFINITY;
  /** Milliseconds of the slowest response. */
  slowest = 0;

  constructor(sql: string) {
    this.#line = new SqlConnection(sqlSettings(sql), { name: "pace", counts: new SqlCounts() });
    void this.#ask();
  }

  /** Returns whether the database was slow at any time since `begin`. */
  wasSlowSince(begin: number): boolean {
    return this.#slowUntil >= begin || performance.now() - this.#due >= SLOW_MS;
  }

  [Symbol.dispose](): void {
    this.#over.abort();
    this.#line.close();
  }

  async #ask(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      this.#due = performance.now();
      // An unavailable database counts as slow.
      await this.#line.run((sql) => sql`select 1`, ASK_MS).catch(() => {});
      await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
      const took = performance.now() - this.#due - EVERY_MS;
      this.slowest = Math.max(this.slowest, took);
      if (took >= SLOW_MS) this.#slowUntil = performance.now();
    }
  }
}
