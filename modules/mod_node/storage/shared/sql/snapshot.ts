/** The current state as commits, for a host whose position is before the beginning of the log. */
import { within } from "../../../util/async/within.ts";
import { failure } from "../../../util/errors.ts";
import { decodeEntries } from "../entries.ts";
import type { Commit, Entry } from "../log.ts";
import type { Sql } from "./connection.ts";

const ROWS = 500;
const STALL_MS = 30_000;

interface Row {
  readonly pos: string;
  readonly kind: "metadata" | "segment" | "removal" | "head";
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly id: string | null;
  readonly bytes: string | null;
  readonly blocks: string | null;
}

/** Returns a single statement, so that the result is consistent. It does not split commits. */
const query = (s: string): string => `
select position as pos, 0 as nth, 'metadata' as kind, key, value, null::text as id, null::bigint as bytes,
  null::bigint as blocks from ${s}.metadata
union all select position, 1, 'segment', null, index, id, bytes, blocks from ${s}.segments
union all select position, 2 + nth, 'removal', null, entry, null, null, null from ${s}.removals
union all select h.position, 2147483647, 'head', null, null, l.id::text, null, null
  from ${s}.head h left join ${s}.log l on l.position = h.position
order by pos, nth`;

/** @throws NodeError STORE_UNAVAILABLE */
export async function* snapshotOf(sql: Sql, schema: string): AsyncGenerator<readonly Commit[]> {
  let rows: Row[] = [];
  const pages = sql
    .unsafe<Row[]>(query(schema), [], { prepare: true, simple: false } as never)
    .cursor(ROWS)
    [Symbol.asyncIterator]();
  for (;;) {
    // After the last page, the client returns a plain value instead of a promise.
    const page = await within(STALL_MS, Promise.resolve(pages.next())).catch((error: Error) => {
      throw failure("STORE_UNAVAILABLE", { reason: error.message }, error);
    });
    if (page.done) break;
    rows.push(...page.value);
    // The last commit of the page may continue on the next page.
    const last = rows.at(-1)?.pos;
    const whole = rows.findIndex(({ pos }) => pos === last);
    if (whole > 0) yield commitsOf(rows.slice(0, whole));
    rows = rows.slice(whole);
  }
  yield commitsOf(rows);
}

const commitsOf = (rows: readonly Row[]): Commit[] =>
  [...Map.groupBy(rows, ({ pos }) => Number(pos))].map(([position, own]) => {
    const id = own.find(({ kind }) => kind === "head")?.id;
    return { position, session: 0, entries: entriesOf(own), ...(id && { id }) };
  });

function removalIn({ pos, value }: Row): Entry[] {
  const entries = decodeEntries(value as Buffer);
  if (entries !== undefined) return entries;
  const reason = `commit ${pos} of the table removals cannot be read; restore the schema from a backup of the database`;
  throw failure("STORE_UNAVAILABLE", { reason });
}

function entriesOf(rows: readonly Row[]): Entry[] {
  const changes = rows.flatMap(({ kind, key, value }) =>
    kind === "metadata" ? [[String(key), Uint8Array.from(value ?? [])] as const] : [],
  );
  const others = rows.flatMap((row): Entry[] => {
    if (row.kind === "removal") return removalIn(row);
    if (row.kind !== "segment") return [];
    const { id, bytes, blocks, value } = row;
    const index = value === null ? {} : { index: Uint8Array.from(value) };
    return [{ kind: "segment", segment: { id: String(id), bytes: Number(bytes), blocks: Number(blocks), ...index } }];
  });
  return changes.length === 0 ? others : [{ kind: "metadata", changes }, ...others];
}
