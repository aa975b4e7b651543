/** The log in PostgreSQL: see `open.ts`. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { failure } from "../../../util/errors.ts";
import type { Append, Appended, EngineEvents, LogEngine, Page } from "../engine.ts";
import { decodeEntries, encodeEntries } from "../entries.ts";
import type { Commit, HeldLock, Position } from "../log.ts";
import { History } from "./history.ts";
import { Line, type Sql, SqlCounts } from "./line.ts";
import { byteArray, lastChanges, marksOf } from "./rows.ts";
import { channelOf, newer, prepareSchema, SCHEMA_VERSION, TRIM_COMMITS } from "./schema.ts";
import type { SqlLogOptions, SqlSettings } from "./settings.ts";
import { snapshotOf } from "./snapshot.ts";

const PAGE = 500;
const TRIM_MS = 60_000;
/** Renewals in the time of a lease. */
const RENEWALS = 5;
const CLOSE_MS = 1000;
/** Locks whose answer was lost and that are given back again and again, as what was asked for them may still be done. */
const MAX_OWED = 1000;

type Row = Record<string, unknown>;

export class SqlEngine implements LogEngine {
  readonly counts = new SqlCounts();
  /** Copies are of these tables: those that were restored from a dump have another history. */
  store = "";
  name = "";
  isNew = false;
  session = 0;
  readonly #settings: SqlSettings;
  readonly #options: Required<SqlLogOptions>;
  readonly #writer: Line;
  readonly #reader: Line;
  /** Renews the lease and hears of news: never busy with anything that takes long. */
  readonly #keeper: Line;
  readonly #closing = new AbortController();
  /** Aborted with the session: nobody keeps a lock beyond it. */
  #sessionEnd = new AbortController();
  /** Names of the locks that this host has. */
  readonly #held = new Set<string>();
  /** Each lock that is taken has a token. The database may have these for this host, and nobody here has them: an answer was lost. */
  readonly #owed = new Set<string>();
  /** Some of them were not given back yet. */
  #owesLocks = false;
  #events: EngineEvents | undefined;
  #keeping: Promise<void> | undefined;
  /** The last commit that is known to exist. */
  #seen: Position = 0;
  readonly #history = new History();

  constructor(settings: SqlSettings, options: SqlLogOptions) {
    this.#settings = settings;
    this.#options = {
      leaseMs: 30_000,
      pollMs: 1000,
      commitMs: 10_000,
      refreshMs: 2000,
      keepCommits: 10_000,
      keepMs: 3_600_000,
      ...options,
    };
    const { counts } = this;
    const { name } = options;
    this.#writer = new Line(settings, { name, counts });
    this.#reader = new Line(settings, { name, counts });
    this.#keeper = new Line(settings, {
      name,
      counts,
      onConnect: async (sql) => {
        await sql.unsafe(`listen ${channelOf(settings.schema)}`);
        // What was told while nobody listened.
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
    const [row] = await this.#ask(
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
    this.#keeping = this.#keep();
  }

  know(position: Position, id: string): void {
    this.#history.note(position, id);
  }

  async read(after: Position): Promise<Page> {
    const known = this.#history.at(after);
    const rows = await this.#ask(
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
    const held = JSON.stringify(locks.map(({ name, fence }) => ({ name, fence })));
    const body = entries.length === 0 ? null : encodeEntries(entries);
    const changes = lastChanges(entries);
    const keys = byteArray([...changes.keys()].map((key) => Buffer.from(key)));
    const values = byteArray([...changes.values()]);
    const marks = JSON.stringify(entries.flatMap(marksOf));
    const id = randomUUID();
    const known = this.#history.at(after);
    const parameters = [after, this.session, id, wantsTurn, held, body, keys, values, marks, PAGE, known];
    const end = performance.now() + this.#options.commitMs;
    for (;;) {
      // Asked again with the same id when the answer is lost.
      const rows = await this.#ask(
        this.#writer,
        end - performance.now(),
        `select a.*, l.id::text as id from SCHEMA.append(
           case when exists (select from SCHEMA.log where position = $1::bigint and id <> $11::uuid) then -1 else $1::bigint end,
           $2::integer, $3::uuid, $4::boolean, $5::text, $6::bytea, $7::text::bytea[], $8::text::bytea[], $9::text, $10::integer
         ) a left join SCHEMA.log l on a.state = 'missed' and l.position = a.pos`,
        parameters,
        ": the answer to a commit was lost, so this call may have taken place",
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
      // It is another host's turn.
      if (state !== "turn") throw new Error(`append answered ${state} ${payload}`);
      this.counts.turns += 1;
      if (performance.now() > end) throw failure("STORE_UNAVAILABLE", { reason: "another host is committing" });
      await sleep(1 + Math.random() * 5);
    }
  }

  async *snapshot(): AsyncGenerator<readonly Commit[]> {
    const line = new Line(this.#settings, { name: this.#options.name, counts: this.counts });
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
    const [row] = await this.#ask(
      this.#writer,
      commitMs,
      `select SCHEMA.join_store($1::text, $2::text, make_interval(secs => $3::double precision), $4::boolean, $5::integer) as id,
         (select version from SCHEMA.version) as version`,
      [name, peer, leaseMs / 1000, isStart, SCHEMA_VERSION],
    );
    if (row?.id === null) throw newer(this.#settings.schema, String(row.version));
    this.#sessionEnd = new AbortController();
    this.session = Number(row?.id);
  }

  async withLock<T>(name: string, run: (lock: HeldLock) => Promise<T>): Promise<{ readonly result: T } | undefined> {
    if (this.#held.has(name)) return undefined;
    this.#held.add(name);
    try {
      return await this.#withLock(name, run);
    } finally {
      this.#held.delete(name);
    }
  }

  async #withLock<T>(name: string, run: (lock: HeldLock) => Promise<T>): Promise<{ readonly result: T } | undefined> {
    const { session } = this;
    const { signal } = this.#sessionEnd;
    const token = randomUUID();
    let isAnswered = false;
    try {
      const [row] = await this.#ask(
        this.#writer,
        this.#options.commitMs,
        "select SCHEMA.take_lock($1::text, $2::integer, $3::uuid) as fence",
        [name, session, token],
      );
      isAnswered = true;
      const fence = row?.fence;
      if (fence === null || fence === undefined) return undefined;
      if (Number(fence) < 0) throw failure("SESSION_LOST");
      return { result: await run({ name, fence: Number(fence), signal }) };
    } finally {
      this.#owe(token);
      await this.#freeLocks(this.#writer, this.#options.commitMs).then(
        () => isAnswered && this.#owed.delete(token),
        () => {
          this.#owesLocks = true;
        },
      );
    }
  }

  #owe(token: string): void {
    this.#owed.add(token);
    const [oldest] = this.#owed;
    if (this.#owed.size > MAX_OWED && oldest !== undefined) this.#owed.delete(oldest);
  }

  /** By their tokens: one that is taken meanwhile has another, and stays. */
  async #freeLocks(line: Line, withinMs: number): Promise<void> {
    if (this.#owed.size === 0) return;
    const free = "update SCHEMA.locks set session = null, token = null where token = any($1::text::uuid[])";
    await this.#ask(line, withinMs, free, [`{${[...this.#owed].join(",")}}`]);
  }

  async sessions(): Promise<readonly number[]> {
    const rows = await this.#ask(this.#reader, this.#options.refreshMs, "select id from SCHEMA.live_sessions()");
    return rows.map(({ id }) => Number(id));
  }

  async hostOf(session: number): Promise<string> {
    const name = "select name from SCHEMA.sessions where id = $1::integer";
    const [row] = await this.#ask(this.#reader, this.#options.refreshMs, name, [session]);
    return `${row?.name ?? "a host"} (session ${session})`;
  }

  async doomed(graceMs: number): Promise<readonly string[]> {
    const rows = await this.#ask(
      this.#reader,
      this.#options.refreshMs,
      "select id from SCHEMA.doomed where since <= clock_timestamp() - make_interval(secs => $1::double precision)",
      [graceMs / 1000],
    );
    return rows.map(({ id }) => String(id));
  }

  async lists(): Promise<readonly string[]> {
    const rows = await this.#ask(this.#reader, this.#options.refreshMs, "select distinct object from SCHEMA.lists");
    return rows.map(({ object }) => String(object));
  }

  async buried(ids: readonly string[]): Promise<void> {
    const bury = "delete from SCHEMA.doomed where id in (select jsonb_array_elements_text($1::text::jsonb))";
    await this.#ask(this.#writer, this.#options.commitMs, bury, [JSON.stringify(ids)]);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#keeping;
    if (this.session > 0 && this.#keeper.isConnected) {
      const end = "update SCHEMA.sessions set ended = true where id = $1::integer";
      await this.#ask(this.#keeper, CLOSE_MS, end, [this.session]).catch(() => {});
    }
    for (const line of [this.#writer, this.#reader, this.#keeper]) line.close();
  }

  async #ask(line: Line, withinMs: number, text: string, parameters: readonly unknown[] = [], mayHaveRun?: string) {
    const query = text.replaceAll("SCHEMA.", `"${this.#settings.schema}".`);
    const ask = async (sql: Sql): Promise<Row[]> => await sql.unsafe(query, parameters as never[], { prepare: true });
    return await line.run(ask, withinMs, mayHaveRun);
  }

  /** Until the log is closed: the lease, the floor below the notices, and the end of the log. */
  async #keep(): Promise<void> {
    const { leaseMs, pollMs, keepCommits, keepMs, refreshMs } = this.#options;
    const renewMs = leaseMs / RENEWALS;
    const trim = "select SCHEMA.trim_log($1::bigint, make_interval(secs => $2::double precision)) as gone";
    let [renewed, trimmed] = [0, performance.now()];
    while (!this.#closing.signal.aborted) {
      const now = performance.now();
      try {
        const isDue = now - renewed >= renewMs;
        await this.#beat(isDue ? leaseMs / 1000 : null);
        if (isDue) renewed = now;
        // With each renewal, too: what was asked of a database that stood still is done when it goes on.
        if (isDue || this.#owesLocks) {
          this.#owesLocks = false;
          await this.#freeLocks(this.#keeper, refreshMs);
        }
        if (now - trimmed >= TRIM_MS) {
          trimmed = now;
          const [row] = await this.#ask(this.#keeper, refreshMs, trim, [keepCommits, keepMs / 1000]);
          // There may be more: that goes with the next look, or a busy store's log would never be short again.
          if (Number(row?.gone) >= TRIM_COMMITS) trimmed = Number.NEGATIVE_INFINITY;
        }
      } catch {
        // Calls meet the same, and say so; the next look is after the same time.
      }
      const pause = Math.min(pollMs, renewMs);
      await sleep(pause, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {});
    }
  }

  async #beat(lease: number | null): Promise<void> {
    const { session } = this;
    const beat = "select * from SCHEMA.beat($1::integer, make_interval(secs => $2::double precision))";
    const [row] = await this.#ask(this.#keeper, this.#options.refreshMs, beat, [session, lease]);
    if (row?.alive === false && session === this.session) this.#loseSession();
    if (Number(row?.pos) <= this.#seen) return;
    this.#seen = Number(row?.pos);
    this.#events?.onNews();
  }

  #pageOf(after: Position, head: Position, rows: readonly Row[]): Page {
    // The rows that mirror the log have what it lacks.
    if (!follow(after, head, rows)) return behind;
    // A look that began earlier may have other commits than those that this host has since written or read.
    if (rows.some(({ pos, id }) => this.#history.contradicts(Number(pos), id))) {
      this.#loseHistory();
      return behind;
    }
    const commits: Commit[] = [];
    for (const { pos, author, payload, id } of rows) {
      const entries = decodeEntries(payload as Buffer);
      if (entries === undefined) return behind;
      // What came while a commit waited for its turn is answered without an id.
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
   * Commits that this host knows were lost: a standby took over that had not got them, or a backup was restored. Its copies
   * begin anew, and its session may have been given to another host.
   */
  #loseHistory(): void {
    this.#history.clear();
    this.#loseSession();
  }
}

/** Whether these are the next commits behind one, up to the head at most, without any missing. */
const follow = (after: Position, head: Position, rows: readonly Row[]): boolean =>
  rows.every(({ pos }, nth) => Number(pos) === after + 1 + nth) &&
  after + rows.length <= head &&
  (rows.length > 0 || after === head);

const behind: Page = { commits: [], more: false, behind: true };
