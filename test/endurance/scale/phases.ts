/**
 * What a host is at, as the calls that it has under way tell, and the locks that it has in the
 * database.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import type { Host } from "./works.ts";

/** A change of what is pinned, in files or published is a commit of its own. */
export const PHASES = ["add", "commit", "gc", "merge"] as const;
export type Phase = (typeof PHASES)[number];

const byLock: Readonly<Record<string, Phase>> = { gc: "gc", "merging segments": "merge" };
const committing = /^(pin\/(add|rm)|files\/(write|rm|cp)|name\/publish)$/;
const ASK_MS = 20_000;
/** For a host to come to what it is to be killed in. */
const AIM_MS = 10_000;

export class Phases implements Disposable {
  readonly #line: SqlConnection;
  readonly #schema: string;

  constructor(sql: string) {
    const settings = sqlSettings(sql);
    this.#line = new SqlConnection(settings, { name: "test", counts: new SqlCounts() });
    this.#schema = `"${settings.schema}"`;
  }

  /** Those of a host that has these calls under way. */
  async of(host: Host, underWay: readonly string[]): Promise<ReadonlySet<Phase>> {
    const found = new Set((await this.#locksOf(host)).flatMap((name) => byLock[name] ?? []));
    if (underWay.includes("add")) found.add("add");
    if (underWay.some((command) => committing.test(command))) found.add("commit");
    return found;
  }

  /** Waits until a host is at something, while `underWay` gives its calls; not for ever. */
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
