/** Inspects the database of a shared store without joining it, for diagnosis. */
import { randomUUID } from "node:crypto";
import { within } from "../../../util/async/within.ts";
import { type Sql, SqlConnection, SqlCounts } from "./connection.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { type SqlSettings, sqlSettings } from "./settings.ts";

export interface InspectedHost {
  readonly name: string;
  readonly peer: string;
  /** Whether the host can commit, by the clock of the database. */
  readonly isAlive: boolean;
  /**
   * Milliseconds until the lease ends, by that clock. A healthy host renews it when four fifths are
   * left.
   */
  readonly left: number;
}

export interface InspectedDatabase {
  /** Version as the database reports it, such as `15.14`. */
  readonly version: string;
  readonly settings: Readonly<Record<"synchronous_commit" | "fsync" | "synchronous_standby_names", string>>;
  /** Whether sessions of this role are read-only by default, whatever rights the role has. */
  readonly isReadOnly: boolean;
  /** Whether notices arrive: a pooler may hold them back. */
  readonly listens: boolean;
  readonly schema: string;
  /** Whether this role may create a schema. */
  readonly mayCreate: boolean;
  /** Undefined when the store has no tables yet. */
  readonly tables: InspectedTables | undefined;
}

export interface InspectedTables {
  /** Version of the tables, and the version that this program knows. */
  readonly version: number;
  readonly known: number;
  /**
   * Rights that this role lacks, such as `insert into log`. The following fields are unknown then.
   */
  readonly missing: readonly string[];
  readonly store: string;
  readonly position: number;
  /** Sessions that did not end by themselves. */
  readonly hosts: readonly InspectedHost[];
  /** Metadata entries with the requested prefixes, by key. */
  readonly entries: ReadonlyMap<string, Uint8Array>;
}

/** Milliseconds to wait for a response or a notice. */
const WAIT_MS = 5000;
const tables = ["head", "log", "metadata", "segments", "removals", "doomed", "sessions", "locks", "lists"];
const rights = ["select", "insert", "update", "delete"];

/**
 * Inspects a database without changing it. `prefixes` are key prefixes of requested metadata
 * entries.
 * @throws NodeError STORE_UNAVAILABLE for a database that is unreachable, refuses this role or is a
 * standby; NodeError for an invalid address
 */
export async function inspectDatabase(
  url: string,
  prefixes: readonly string[],
  waitMs = WAIT_MS,
): Promise<InspectedDatabase> {
  const settings = sqlSettings(url);
  const line = new SqlConnection(settings, { name: "doctor", counts: new SqlCounts() });
  try {
    const [row] = await line.run(
      (sql) =>
        sql`select current_setting('server_version') as version, current_setting('synchronous_commit') as sync,
          current_setting('fsync') as fsync, current_setting('default_transaction_read_only') as reading, current_setting('synchronous_standby_names') as standbys,
          has_database_privilege(current_database(), 'CREATE') as may`,
      waitMs,
    );
    const listens = await receivesNotices(settings, line, waitMs);
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

/** Whether a notice of one connection arrives at another one. */
async function receivesNotices(settings: SqlSettings, sender: SqlConnection, waitMs: number): Promise<boolean> {
  const channel = `modhost_doctor_${randomUUID().replaceAll("-", "")}`;
  const received = Promise.withResolvers<void>();
  const listener = new SqlConnection(settings, {
    name: "doctor",
    counts: new SqlCounts(),
    onNotice: () => received.resolve(),
  });
  try {
    await listener.run((sql) => sql.unsafe(`listen ${channel}`), waitMs);
    await sender.run((sql) => sql.unsafe(`notify ${channel}, 'x'`), waitMs);
    await within(waitMs, received.promise);
    return true;
  } catch {
    return false;
  } finally {
    listener.close();
  }
}

async function tablesIn(sql: Sql, schema: string, prefixes: readonly string[]): Promise<InspectedTables | undefined> {
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
