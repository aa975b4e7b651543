/** The log in PostgreSQL; see `open.ts`. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { failure } from "../../../util/errors.ts";
import type { Append, Appended, EngineEvents, LogEngine, Page } from "../engine.ts";
import { decodeEntries, encodeEntries } from "../entries.ts";
import type { Commit, Position, StoreLock } from "../log.ts";
import { type Sql, SqlConnection, SqlCounts } from "./connection.ts";
import { History } from "./history.ts";
import { byteArray, lastChanges, marksOf } from "./rows.ts";
import { channelOf, newer, prepareSchema, SCHEMA_VERSION, TRIM_COMMITS } from "./schema.ts";
import type { SqlLogOptions, SqlSettings } from "./settings.ts";
import { snapshotOf } from "./snapshot.ts";
import { twins, writeTest } from "./statements.ts";

const PAGE = 500;
const TRIM_MS = 60_000;
/** Number of renewals during a lease. */
const RENEWALS = 5;
const CLOSE_MS = 1000;
/**
 * Maximum number of locks that are released again and again because the response to their request
 * was lost. The database may still execute such a request later.
 */
const MAX_STALE_TOKENS = 1000;

type Row = Record<string, unknown>;

export class SqlEngine implements LogEngine {
  readonly counts = new SqlCounts();
  /**
   * Identifies these tables. Tables that were restored from a dump have another history, so copies
   * of the old tables do not match.
   */
  store = "";
  name = "";
  isNew = false;
  session = 0;
  readonly #settings: SqlSettings;
  readonly #options: Required<SqlLogOptions>;
  readonly #writer: SqlConnection;
  readonly #reader: SqlConnection;
  /** Renews the lease and receives notices. It never runs statements that take long. */
  readonly #keeper: SqlConnection;
  readonly #closing = new AbortController();
  /** Aborted when the session ends, because no lock outlives it. */
  #sessionEnd = new AbortController();
  /** Names of the locks that this host has. */
  readonly #ownLocks = new Set<string>();
  /**
   * Tokens of locks that the database may have recorded for this host although no caller has them,
   * because a response was lost. Each request for a lock has a token of its own.
   */
  readonly #staleTokens = new Set<string>();
  /** Whether locks with these tokens still have to be released. */
  #hasUnreleasedLocks = false;
  #events: EngineEvents | undefined;
  #maintenance: Promise<void> | undefined;
  /** The last commit that is known to exist. */
  #seen: Position = 0;
  readonly #history = new History();
  /** All sessions of this process. */
  readonly #sessions: number[] = [];

  constructor(settings: SqlSettings, options: SqlLogOptions) {
    this.#settings = settings;
    this.#options = {
      leaseMs: 30_000,
      pollMs: 1000,
      commitMs: 10_000,
      refreshMs: 2000,
      keepCommits: 10_000,
      keepMs: 3_600_000,
      onTwin: () => undefined,
      ...options,
    };
    const { counts } = this;
    const { name } = options;
    this.#writer = new SqlConnection(settings, { name, counts });
    this.#reader = new SqlConnection(settings, { name, counts });
    this.#keeper = new SqlConnection(settings, {
      name,
      counts,
      onConnect: async (sql) => {
        await sql.unsafe(`listen ${channelOf(settings.schema)}`);
        // Notices may have been missed while nobody listened.
        this.#events?.onNews();
      },
      onNotice: (author) => {
        if (author !== String(this.session)) this.#events?.onNews();
      },
    });
  }

  async open(): Promise<void> {
    const { schema } = this.#settings;
    await this.#writer.run((sql) => prepareSchema(sql, schema), this.#options.commitMs);
    const [row] = await this.#query(
      this.#writer,
      this.#options.commitMs,
      "select store, position, 'SCHEMA.head'::regclass::oid as made from SCHEMA.head",
    );
    this.name = String(row?.store);
    this.store = `${row?.store}-${row?.made}`;
    this.isNew = Number(row?.position) === 0;
    await this.#join(true);
  }

  begin(events: EngineEvents): void {
    this.#events = events;
    this.#maintenance = this.#maintain();
  }

  expectCommit(position: Position, id: string): void {
    this.#history.note(position, id);
  }

  async read(after: Position): Promise<Page> {
    const known = this.#history.at(after);
    const rows = await this.#query(
      this.#reader,
      this.#options.refreshMs,
      `select h.position as head, h.first, p.pos, p.author, p.payload, l.id::text as id,
         (select id::text from SCHEMA.log where position = $1::bigint) as found
       from SCHEMA.head h left join lateral SCHEMA.page_of($1::bigint, $2::integer) p on true
         left join SCHEMA.log l on l.position = p.pos order by p.pos`,
      [after, PAGE],
    );
    const head = Number(rows[0]?.head);
    const found = rows[0]?.found;
    if (after > head || (known !== null && typeof found === "string" && found !== known)) {
      this.#seen = head;
      this.#loseHistory();
      return behind;
    }
    this.#seen = Math.max(this.#seen, head);
    if (after + 1 < Number(rows[0]?.first)) return behind;
    this.#history.note(after, found);
    return this.#pageOf(
      after,
      head,
      rows.filter(({ pos }) => pos !== null),
    );
  }

  async append({ after, entries, locks, wantsTurn }: Append): Promise<Appended> {
    const lockList = JSON.stringify(locks.map(({ name, fence }) => ({ name, fence })));
    const body = entries.length === 0 ? null : encodeEntries(entries);
    const changes = lastChanges(entries);
    const keys = byteArray([...changes.keys()].map((key) => Buffer.from(key)));
    const values = byteArray([...changes.values()]);
    const marks = JSON.stringify(entries.flatMap(marksOf));
    const id = randomUUID();
    const known = this.#history.at(after);
    const parameters = [after, this.session, id, wantsTurn, lockList, body, keys, values, marks, PAGE, known];
    const end = performance.now() + this.#options.commitMs;
    for (;;) {
      // The statement has the same id when it is repeated after a lost response.
      const rows = await this.#query(
        this.#writer,
        end - performance.now(),
        `select a.*, l.id::text as id from SCHEMA.append(
           case when exists (select from SCHEMA.log where position = $1::bigint and id <> $11::uuid) then -1 else $1::bigint end,
           $2::integer, $3::uuid, $4::boolean, $5::text, $6::bytea, $7::text::bytea[], $8::text::bytea[], $9::text, $10::integer
         ) a left join SCHEMA.log l on a.state = 'missed' and l.position = a.pos`,
        parameters,
        ": the response to a commit was lost, so this call may have succeeded",
      );
      const { state, pos, payload } = rows[0] as Row;
      if (state === "done") {
        this.#seen = Math.max(this.#seen, Number(pos));
        if (body !== null) this.#history.note(Number(pos), id);
        return { position: Number(pos), id };
      }
      if (state === "session") throw failure("SESSION_LOST");
      if (state === "lock") return { lost: rows.map((row) => String(row.payload)) };
      if (state === "behind") return { missed: behind };
      if (state === "head") return { missed: this.#pageOf(after, Number(pos), rows.slice(1)) };
      // Another host has its turn.
      if (state !== "turn") throw new Error(`append returned ${state} ${payload}`);
      this.counts.turns += 1;
      if (performance.now() > end) throw failure("STORE_UNAVAILABLE", { reason: "another host is committing" });
      await sleep(1 + Math.random() * 5);
    }
  }

  async *snapshot(): AsyncGenerator<readonly Commit[]> {
    // The snapshot replaces the copies, and with them the commits that they expected.
    this.#history.clear();
    const line = new SqlConnection(this.#settings, { name: this.#options.name, counts: this.counts });
    try {
      const sql = await line.run(async (sql) => sql, this.#options.refreshMs);
      yield* snapshotOf(sql, `"${this.#settings.schema}"`);
    } finally {
      line.close();
    }
  }

  join(): Promise<void> {
    return this.#join(false);
  }

  async #join(isStart: boolean): Promise<void> {
    const { name, peer, leaseMs, commitMs } = this.#options;
    const [row] = await this.#query(
      this.#writer,
      commitMs,
      `select SCHEMA.join_store($1::text, $2::text, make_interval(secs => $3::double precision), $4::boolean, $5::integer) as id,
         (select version from SCHEMA.version) as version`,
      [name, peer, leaseMs / 1000, isStart, SCHEMA_VERSION],
    );
    if (row?.id === null) throw newer(this.#settings.schema, String(row.version));
    this.#sessionEnd = new AbortController();
    this.session = Number(row?.id);
    this.#sessions.push(this.session);
  }

  async withLock<T>(name: string, run: (lock: StoreLock) => Promise<T>): Promise<{ readonly result: T } | undefined> {
    if (this.#ownLocks.has(name)) return undefined;
    this.#ownLocks.add(name);
    try {
      return await this.#withLock(name, run);
    } finally {
      this.#ownLocks.delete(name);
    }
  }

  async #withLock<T>(name: string, run: (lock: StoreLock) => Promise<T>): Promise<{ readonly result: T } | undefined> {
    const { session } = this;
    const { signal } = this.#sessionEnd;
    const token = randomUUID();
    let isResponseKnown = false;
    try {
      const [row] = await this.#query(
        this.#writer,
        this.#options.commitMs,
        "select SCHEMA.take_lock($1::text, $2::integer, $3::uuid) as fence",
        [name, session, token],
      );
      isResponseKnown = true;
      const fence = row?.fence;
      if (fence === null || fence === undefined) return undefined;
      if (Number(fence) < 0) throw failure("SESSION_LOST");
      return { result: await run({ name, fence: Number(fence), signal }) };
    } finally {
      this.#addStaleToken(token);
      await this.#freeLocks(this.#writer, this.#options.commitMs).then(
        () => isResponseKnown && this.#staleTokens.delete(token),
        () => {
          this.#hasUnreleasedLocks = true;
        },
      );
    }
  }

  #addStaleToken(token: string): void {
    this.#staleTokens.add(token);
    const [oldest] = this.#staleTokens;
    if (this.#staleTokens.size > MAX_STALE_TOKENS && oldest !== undefined) this.#staleTokens.delete(oldest);
  }

  /**
   * Releases locks by token. A lock that was taken again in the meantime has another token and
   * stays.
   */
  async #freeLocks(line: SqlConnection, withinMs: number): Promise<void> {
    if (this.#staleTokens.size === 0) return;
    const free = "update SCHEMA.locks set session = null, token = null where token = any($1::text::uuid[])";
    await this.#query(line, withinMs, free, [`{${[...this.#staleTokens].join(",")}}`]);
  }

  async tryWriting(): Promise<void> {
    await this.#query(this.#writer, this.#options.commitMs, writeTest);
  }

  async sessions(): Promise<readonly number[]> {
    const rows = await this.#query(this.#reader, this.#options.refreshMs, "select id from SCHEMA.live_sessions()");
    return rows.map(({ id }) => Number(id));
  }

  async hostOf(session: number): Promise<string> {
    const name = "select name from SCHEMA.sessions where id = $1::integer";
    const [row] = await this.#query(this.#reader, this.#options.refreshMs, name, [session]);
    return `${row?.name ?? "a host"} (session ${session})`;
  }

  async doomed(graceMs: number): Promise<readonly string[]> {
    const rows = await this.#query(
      this.#reader,
      this.#options.refreshMs,
      "select id from SCHEMA.doomed where since <= clock_timestamp() - make_interval(secs => $1::double precision)",
      [graceMs / 1000],
    );
    return rows.map(({ id }) => String(id));
  }

  async lists(): Promise<readonly string[]> {
    const rows = await this.#query(this.#reader, this.#options.refreshMs, "select distinct object from SCHEMA.lists");
    return rows.map(({ object }) => String(object));
  }

  async buried(ids: readonly string[]): Promise<void> {
    const bury = "delete from SCHEMA.doomed where id in (select jsonb_array_elements_text($1::text::jsonb))";
    await this.#query(this.#writer, this.#options.commitMs, bury, [JSON.stringify(ids)]);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#maintenance;
    if (this.session > 0 && this.#keeper.isConnected) {
      const end = "update SCHEMA.sessions set ended = true where id = $1::integer";
      await this.#query(this.#keeper, CLOSE_MS, end, [this.session]).catch(() => {});
    }
    for (const line of [this.#writer, this.#reader, this.#keeper]) line.close();
  }

  async #query(
    line: SqlConnection,
    withinMs: number,
    text: string,
    parameters: readonly unknown[] = [],
    mayHaveRun?: string,
  ) {
    const query = text.replaceAll("SCHEMA.", `"${this.#settings.schema}".`);
    const ask = async (sql: Sql): Promise<Row[]> => await sql.unsafe(query, parameters as never[], { prepare: true });
    return await line.run(ask, withinMs, mayHaveRun);
  }

  /**
   * Renews the lease, reads the head of the log in case notices do not arrive, and trims the log
   * until it is closed.
   */
  async #maintain(): Promise<void> {
    const { leaseMs, pollMs, keepCommits, keepMs, refreshMs, peer, onTwin } = this.#options;
    const renewMs = leaseMs / RENEWALS;
    const trim = "select SCHEMA.trim_log($1::bigint, make_interval(secs => $2::double precision)) as gone";
    let renewed = 0;
    let trimmed = performance.now();
    while (!this.#closing.signal.aborted) {
      const now = performance.now();
      try {
        const isDue = now - renewed >= renewMs;
        await this.#renewLease(isDue ? leaseMs / 1000 : null);
        if (isDue) renewed = now;
        // Also runs with each renewal: a database that was stalled may execute old requests for
        // locks when it continues.
        if (isDue || this.#hasUnreleasedLocks) {
          this.#hasUnreleasedLocks = false;
          await this.#freeLocks(this.#keeper, refreshMs);
        }
        if (isDue) {
          const rows = await this.#query(this.#keeper, refreshMs, twins, [peer, JSON.stringify(this.#sessions)]);
          for (const { id, name } of rows) onTwin(String(name), Number(id));
        }
        if (now - trimmed >= TRIM_MS) {
          trimmed = now;
          const [row] = await this.#query(this.#keeper, refreshMs, trim, [keepCommits, keepMs / 1000]);
          // There may be more to trim. The next iteration continues, because otherwise the log of a
          // busy store would grow without limit.
          if (Number(row?.gone) >= TRIM_COMMITS) trimmed = Number.NEGATIVE_INFINITY;
        }
      } catch {
        // Calls meet the same failure and report it. The next iteration begins after the usual
        // pause.
      }
      const pause = Math.min(pollMs, renewMs);
      await sleep(pause, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {});
    }
  }

  async #renewLease(lease: number | null): Promise<void> {
    const { session } = this;
    const beat = "select * from SCHEMA.beat($1::integer, make_interval(secs => $2::double precision))";
    const [row] = await this.#query(this.#keeper, this.#options.refreshMs, beat, [session, lease]);
    if (row?.alive === false && session === this.session) this.#loseSession();
    if (Number(row?.pos) <= this.#seen) return;
    this.#seen = Number(row?.pos);
    this.#events?.onNews();
  }

  #pageOf(after: Position, head: Position, rows: readonly Row[]): Page {
    // The tables that mirror the log have the commits that it lacks.
    if (!follow(after, head, rows)) return behind;
    // A read that began earlier may return other commits than those that this host has written or
    // read since.
    if (rows.some(({ pos, id }) => this.#history.contradicts(Number(pos), id))) {
      this.#loseHistory();
      return behind;
    }
    const commits: Commit[] = [];
    for (const { pos, author, payload, id } of rows) {
      const entries = decodeEntries(payload as Buffer);
      if (entries === undefined) return behind;
      // Commits that arrived while a commit waited for its turn are returned without ids.
      const named = typeof id === "string" && { id };
      commits.push({ position: Number(pos), session: Number(author), ...named, entries });
    }
    for (const { pos, id } of rows) this.#history.note(Number(pos), id);
    return { commits, more: (commits.at(-1)?.position ?? head) < head, behind: false };
  }

  #loseSession(): void {
    this.#sessionEnd.abort();
    this.#events?.onSessionLost();
  }

  /**
   * Handles the loss of commits that this host knows, after a failover to a standby without them,
   * or after a restored backup. The copies start again, and the session is given up, because
   * another host may have the same one.
   */
  #loseHistory(): void {
    this.#history.clear();
    this.#events?.onHistoryLost();
    this.#loseSession();
  }
}

/** Whether these commits directly follow `after` without a gap, up to the head at most. */
const follow = (after: Position, head: Position, rows: readonly Row[]): boolean =>
  rows.every(({ pos }, nth) => Number(pos) === after + 1 + nth) &&
  after + rows.length <= head &&
  (rows.length > 0 || after === head);

const behind: Page = { commits: [], more: false, behind: true };
