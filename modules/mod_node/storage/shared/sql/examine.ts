/** What can be told of the database of a shared store without joining it: for whoever looks for what is wrong. */
import { randomUUID } from "node:crypto";
import { within } from "../../../util/async/within.ts";
import { Line, type Sql, SqlCounts } from "./line.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { type SqlSettings, sqlSettings } from "./settings.ts";

export interface HostExamined {
  readonly name: string;
  readonly peer: string;
  /** By the clock of the database: it can commit. */
  readonly isAlive: boolean;
  /** Milliseconds, by that clock, until its lease is over; a host that is well renews it when four fifths are left. */
  readonly left: number;
}

export interface DatabaseExamined {
  /** As it names itself, such as `15.14`. */
  readonly version: string;
  readonly settings: Readonly<Record<"synchronous_commit" | "fsync" | "synchronous_standby_names", string>>;
  /** No session of this role can write, whatever rights it has. */
  readonly isReadOnly: boolean;
  /** Whether notices come: a pooler may keep them. */
  readonly listens: boolean;
  readonly schema: string;
  /** This role may make a schema. */
  readonly mayCreate: boolean;
  /** Undefined where there are none yet. */
  readonly tables: TablesExamined | undefined;
}

export interface TablesExamined {
  /** Of the tables, and the one that this program knows. */
  readonly version: number;
  readonly known: number;
  /** What this role may not do, such as `insert into log`; nothing below is known then. */
  readonly missing: readonly string[];
  readonly store: string;
  readonly position: number;
  /** Sessions that did not end by themselves. */
  readonly hosts: readonly HostExamined[];
  /** Entries of the metadata, by key: of those prefixes that are asked for. */
  readonly entries: ReadonlyMap<string, Uint8Array>;
}

/** Milliseconds for an answer, and for a notice. */
const WAIT_MS = 5000;
const tables = ["head", "log", "metadata", "segments", "removals", "doomed", "sessions", "locks", "lists"];
const rights = ["select", "insert", "update", "delete"];

/**
 * Changes nothing. `prefixes`: of keys whose entries are wanted. @throws NodeError STORE_UNAVAILABLE for a database that cannot be reached,
 * refuses this role, or is a standby; for an address that is none
 */
export async function examineDatabase(
  url: string,
  prefixes: readonly string[],
  waitMs = WAIT_MS,
): Promise<DatabaseExamined> {
  const settings = sqlSettings(url);
  const line = new Line(settings, { name: "doctor", counts: new SqlCounts() });
  try {
    const [row] = await line.run(
      (sql) =>
        sql`select current_setting('server_version') as version, current_setting('synchronous_commit') as sync,
          current_setting('fsync') as fsync, current_setting('default_transaction_read_only') as reading, current_setting('synchronous_standby_names') as standbys,
          has_database_privilege(current_database(), 'CREATE') as may`,
      waitMs,
    );
    const listens = await hearsItself(settings, line, waitMs);
    const found = await line.run((sql) => tablesIn(sql, settings.schema, prefixes), waitMs);
    return {
      version: String(row?.version),
      settings: {
        synchronous_commit: String(row?.sync),
        fsync: String(row?.fsync),
        synchronous_standby_names: String(row?.standbys),
      },
      isReadOnly: row?.reading === "on",
      listens,
      schema: settings.schema,
      mayCreate: row?.may === true,
      tables: found,
    };
  } finally {
    line.close();
  }
}

/** Whether what one connection tells comes to another one. */
async function hearsItself(settings: SqlSettings, teller: Line, waitMs: number): Promise<boolean> {
  const channel = `modhost_doctor_${randomUUID().replaceAll("-", "")}`;
  const heard = Promise.withResolvers<void>();
  const listener = new Line(settings, { name: "doctor", counts: new SqlCounts(), onNotice: () => heard.resolve() });
  try {
    await listener.run((sql) => sql.unsafe(`listen ${channel}`), waitMs);
    await teller.run((sql) => sql.unsafe(`notify ${channel}, 'x'`), waitMs);
    await within(waitMs, heard.promise);
    return true;
  } catch {
    return false;
  } finally {
    listener.close();
  }
}

async function tablesIn(sql: Sql, schema: string, prefixes: readonly string[]): Promise<TablesExamined | undefined> {
  const s = `"${schema}"`;
  const [there] = await sql.unsafe("select to_regclass($1) is not null as is", [`${s}.version`]);
  if (there?.is !== true) return undefined;
  const none = { known: SCHEMA_VERSION, store: "", position: 0, hosts: [], entries: new Map() };
  const [usage] = await sql.unsafe(
    "select has_schema_privilege($1, 'usage') and has_table_privilege($2, 'select') as may",
    [schema, `${s}.version`],
  );
  if (usage?.may !== true) return { ...none, version: 0, missing: [`use the schema ${schema}`] };
  const [row] = await sql.unsafe(`select version from ${s}.version`);
  const version = Number(row?.version ?? 0);
  if (version !== SCHEMA_VERSION) return { ...none, version, missing: [] };
  const wanted = tables.flatMap((table) => rights.map((right) => ({ table, right })));
  const refused = await sql.unsafe(
    `select w->>'right' as right, w->>'table' as name from jsonb_array_elements($1::text::jsonb) w
     where not has_table_privilege('${s}.' || (w->>'table'), w->>'right')`,
    [JSON.stringify(wanted)],
  );
  const missing = refused.map(({ right, name }) => `${right} in ${name}`);
  if (missing.length > 0) return { ...none, version, missing };
  const [head] = await sql.unsafe(`select store, position from ${s}.head`);
  const hosts = await sql.unsafe(
    `select name, peer, lease > clock_timestamp() as alive, extract(epoch from lease - clock_timestamp()) * 1000 as remaining
     from ${s}.sessions where not ended order by id`,
  );
  const entries = await sql.unsafe(
    `select key, value from ${s}.metadata where exists (
       select from jsonb_array_elements_text($1::text::jsonb) p
       where substring(key for octet_length(convert_to(p, 'UTF8'))) = convert_to(p, 'UTF8'))`,
    [JSON.stringify(prefixes)],
  );
  return {
    version,
    known: SCHEMA_VERSION,
    missing,
    store: String(head?.store),
    position: Number(head?.position),
    hosts: hosts.map((row) => ({
      name: row.name,
      peer: row.peer,
      isAlive: row.alive === true,
      left: Number(row.remaining),
    })),
    entries: new Map(entries.map(({ key, value }) => [Buffer.from(key).toString(), value])),
  };
}
