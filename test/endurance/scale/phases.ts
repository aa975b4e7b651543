/**
 * Determines the current phase of a host from its pending calls and from its locks in the database.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import type { Host } from "./works.ts";

/** Any change of pins, files or names is a commit of its own. */
export const PHASES = ["add", "commit", "gc", "merge"] as const;
export type Phase = (typeof PHASES)[number];

const byLock: Readonly<Record<string, Phase>> = { gc: "gc", "merging segments": "merge" };
const committing = /^(pin\/(add|rm)|files\/(write|rm|cp)|name\/publish)$/;
const ASK_MS = 20_000;
/** Timeout for a host to reach the phase in which it is to be killed. */
const AIM_MS = 10_000;

export class Phases implements Disposable {
  readonly #line: SqlConnection;
  readonly #schema: string;

  constructor(sql: string) {
    const settings = sqlSettings(sql);
    this.#line = new SqlConnection(settings, { name: "test", counts: new SqlCounts() });
    this.#schema = `"${settings.schema}"`;
  }

  /** Returns the phases of a host with these pending calls. */
  async of(host: Host, underWay: readonly string[]): Promise<ReadonlySet<Phase>> {
    const found = new Set((await this.#locksOf(host)).flatMap((name) => byLock[name] ?? []));
    if (underWay.includes("add")) found.add("add");
    if (underWay.some((command) => committing.test(command))) found.add("commit");
    return found;
  }

  /** Waits until a host is in a phase, or for the timeout. `underWay` returns its pending calls. */
  async reached(wanted: Phase, host: Host, underWay: () => readonly string[] | undefined): Promise<void> {
    const end = performance.now() + AIM_MS;
    for (let calls = underWay(); calls !== undefined && performance.now() < end; calls = underWay()) {
      if ((await this.of(host, calls)).has(wanted)) return;
      await sleep(1);
    }
  }

  [Symbol.dispose](): void {
    this.#line.close();
  }

  async #locksOf({ id }: Host): Promise<readonly string[]> {
    const query = `select l.name from ${this.#schema}.locks l join ${this.#schema}.sessions s on s.id = l.session
      where s.peer = $1::text and not s.ended`;
    const rows = await this.#line.run((sql) => sql.unsafe(query, [id], { prepare: true }), ASK_MS);
    return rows.map(({ name }) => String(name));
  }
}
