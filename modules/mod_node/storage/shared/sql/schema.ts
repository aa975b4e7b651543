/** The tables of a store, and functions that need one round trip each. */
import { failure, type NodeError } from "../../../util/errors.ts";
import type { Sql } from "./connection.ts";

/**
 * Version of the definitions below. A test fails when they change and the version does not. A
 * change of tables also needs a step in `migrations`.
 */
export const SCHEMA_VERSION = 3;
/** Maximum number of commits that are trimmed together, because commits wait for it. */
export const TRIM_COMMITS = 1000;

/**
 * Statements that change the tables of a version to those of the next one. Functions are re-created
 * in any case.
 */
const migrations: Readonly<Record<number, (schema: string) => string>> = {
  1: () => "",
  2: (s) => `${lists(s)}
insert into ${s}.lists (object, position)
  select distinct x.found[1], e.position
  from (select position, entry as bytes from ${s}.removals union all select position, entries from ${s}.log) e,
    lateral regexp_matches(encode(e.bytes, 'escape'), '[0-9a-f]{2}/[0-9a-f]{64}[.]cids', 'g') as x(found);
`,
};

const quoted = (schema: string): string => `"${schema}"`;
/** Name of the channel on which hosts are notified of commits. */
export const channelOf = (schema: string): string => `"${schema}_news"`;

const lists = (s: string): string => `
-- Objects with lists of blocks, and the commits that name them: each is needed while the log or \`removals\` has one of those.
create table ${s}.lists (object text not null, position bigint not null, primary key (object, position));
`;

const tables = (s: string): string => `
create table ${s}.head (
  only_row boolean primary key default true check (only_row),
  store uuid not null default gen_random_uuid(),
  position bigint not null,
  first bigint not null,              -- the oldest commit that is in the log
  turn integer,                       -- the session that came too late several times: for a moment others wait
  turn_until timestamptz not null default '-infinity'
);
insert into ${s}.head (position, first) values (0, 1);
create table ${s}.log (
  position bigint primary key,
  id uuid not null unique,
  session integer not null,
  at timestamptz not null default clock_timestamp(),
  entries bytea not null
);
-- The present state, for whoever is behind the beginning of the log: each row with the commit that it comes from.
create table ${s}.metadata (key bytea primary key, value bytea not null, position bigint not null);
create index on ${s}.metadata (position);
create table ${s}.segments (
  id text primary key, position bigint not null, bytes bigint not null, blocks bigint not null, index bytea
);
create index on ${s}.segments (position);
create table ${s}.removals (
  position bigint not null, nth integer not null, kind text not null, epoch bigint not null, entry bytea not null,
  primary key (position, nth)
);
-- Segments that were replaced, and keys of lists that nothing names any more: their objects are deleted when the grace is over.
create table ${s}.doomed (id text primary key, since timestamptz not null default clock_timestamp());
create table ${s}.sessions (
  id integer generated always as identity primary key,
  name text not null, peer text not null,
  lease timestamptz not null,
  ended boolean not null default false
);
create table ${s}.locks (name text primary key, fence bigint not null, session integer, token uuid);
${lists(s)}`;

/**
 * `append` writes one commit after position `after_`, or says why not. Called again with the same
 * id, it returns the same result, so a lost response can be requested again. An attempt whose
 * caller is gone is refused once its position in the log is taken.
 */
const appendFunction = (s: string, channel: string): string => `
create function ${s}.append(
  after_ bigint, who integer, commit_id uuid, want_turn boolean, held text, entries_ bytea,
  keys bytea[], vals bytea[], marks text, page integer
) returns table (state text, pos bigint, author integer, payload bytea) language plpgsql set search_path = ${s} as $$
declare
  h head%rowtype;
  written bigint;
begin
  select * into h from head for update;
  select position into written from log where id = commit_id;
  if found then
    return query select 'done', written, who, null::bytea;
    return;
  end if;
  -- Held until the end: a session cannot be found dead while it commits.
  perform from sessions where id = who and not ended and lease > clock_timestamp() for share;
  if not found then
    return query select 'session', 0::bigint, 0, null::bytea;
    return;
  end if;
  return query select 'lock', 0::bigint, 0, convert_to(x.name, 'UTF8')
    from jsonb_to_recordset(held::jsonb) as x(name text, fence bigint)
    where not exists (select from locks l where l.name = x.name and l.fence = x.fence and l.session = who);
  if found then return; end if;
  if after_ + 1 < h.first or after_ > h.position then
    return query select 'behind', h.position, 0, null::bytea;
    return;
  end if;
  if after_ < h.position then
    if want_turn and h.turn_until < clock_timestamp() then
      update head set turn = who, turn_until = clock_timestamp() + interval '1 second';
    end if;
    return query select 'head', h.position, 0, null::bytea;
    return query select 'missed', r.pos, r.author, r.payload from page_of(after_, page) r;
    return;
  end if;
  if entries_ is null then
    return query select 'done', after_, who, null::bytea;
    return;
  end if;
  if h.turn is distinct from who and h.turn_until > clock_timestamp() then
    return query select 'turn', 0::bigint, 0, null::bytea;
    return;
  end if;
  written := after_ + 1;
  insert into log (position, id, session, entries) values (written, commit_id, who, entries_);
  update head set position = written, turn_until = '-infinity';
  insert into metadata (key, value, position)
    select x.k, x.v, written from unnest(keys, vals) as x(k, v) where x.v is not null
    on conflict (key) do update set value = excluded.value, position = excluded.position;
  delete from metadata where key in (select x.k from unnest(keys, vals) as x(k, v) where x.v is null);
  perform mirror(written, marks::jsonb);
  perform pg_notify('${channel}', who::text);
  return query select 'done', written, who, null::bytea;
end $$;
`;

const otherFunctions = (s: string): string => `
-- As many commits as fit a page; always one.
create function ${s}.page_of(after_ bigint, page integer)
returns table (pos bigint, author integer, payload bytea) language sql stable set search_path = ${s} as $$
  select p.position, p.session, p.entries from (
    select l.position, l.session, l.entries,
      sum(length(l.entries)) over (order by l.position) - length(l.entries) as before
    from (select * from log where log.position > after_ order by log.position limit page) l
  ) p where p.before < 8 * 1024 * 1024 order by p.position
$$;

-- What is not metadata: segments, and the steps of a collection.
create function ${s}.mirror(written bigint, marks jsonb) returns void language plpgsql set search_path = ${s} as $$
begin
  if jsonb_array_length(marks) = 0 then return; end if;
  with gone as (
    delete from segments where id in (select m->>'id' from jsonb_array_elements(marks) m where m->>'kind' = 'replaced')
    returning id
  ) insert into doomed (id) select id from gone on conflict do nothing;
  insert into segments (id, position, bytes, blocks, index)
    select m->>'id', written, (m->>'bytes')::bigint, (m->>'blocks')::bigint, decode(m->>'index', 'base64')
    from jsonb_array_elements(marks) m where m->>'kind' = 'segment'
    on conflict do nothing;
  insert into removals (position, nth, kind, epoch, entry)
    select written, n, m->>'kind', (m->>'epoch')::bigint, decode(m->>'entry', 'base64')
    from jsonb_array_elements(marks) with ordinality as x(m, n) where m ? 'epoch';
  insert into lists (object, position) select m->>'list', written from jsonb_array_elements(marks) m where m ? 'list'
    on conflict do nothing;
  delete from removals r using jsonb_array_elements(marks) m
    where m->>'kind' = 'removed' and r.kind = 'acknowledged' and r.epoch = (m->>'epoch')::bigint;
end $$;

-- \`is_start\`: earlier sessions of this peer are over, as the lock of its repo proves. Null for a program of another version.
create function ${s}.join_store(name_ text, peer_ text, lease_ interval, is_start boolean, program integer) returns integer
language plpgsql set search_path = ${s} as $$
declare
  joined integer;
begin
  -- Held until the end: nobody changes the tables meanwhile.
  perform from version where version = program for share;
  if not found then return null; end if;
  update sessions set ended = true where is_start and peer = peer_ and not ended;
  insert into sessions (name, peer, lease) values (name_, peer_, clock_timestamp() + lease_) returning id into joined;
  return joined;
end $$;

-- Renews the lease, unless it is over; tells the head as well.
create function ${s}.beat(who integer, renew interval) returns table (alive boolean, pos bigint)
language plpgsql set search_path = ${s} as $$
begin
  if renew is null then
    return query select exists (select from sessions where id = who and not ended and lease > clock_timestamp()),
      (select position from head);
    return;
  end if;
  update sessions set lease = clock_timestamp() + renew where id = who and not ended and lease > clock_timestamp();
  return query select found, (select position from head);
end $$;

-- Sessions that are alive; what is over stays over.
create function ${s}.live_sessions() returns table (id integer, name text, peer text)
language plpgsql set search_path = ${s} as $$
begin
  update sessions set ended = true where not ended and lease <= clock_timestamp();
  return query select x.id, x.name, x.peer from sessions x where not ended order by x.id;
end $$;

create function ${s}.take_lock(lock_name text, who integer, token_ uuid) returns bigint
language plpgsql set search_path = ${s} as $$
declare
  taken bigint;
begin
  -- No commit that checks the lock is under way.
  perform from head for update;
  perform live_sessions();
  if not exists (select from sessions where id = who and not ended) then return -1; end if;
  insert into locks (name, fence) values (lock_name, 0) on conflict do nothing;
  update locks l set fence = case when l.token = token_ then l.fence else l.fence + 1 end, session = who, token = token_
    where l.name = lock_name
      and (l.token = token_ or l.session is null or l.session = who or not exists (select from sessions x where x.id = l.session and not x.ended))
    returning l.fence into taken;
  return taken;
end $$;

-- Forgets commits that are older than both; tells how many. What was removed matters to segments from before only, and sessions
-- that are over to nobody. A list that neither what is left of the log nor of the removals names is deleted later, as segments are.
create function ${s}.trim_log(keep bigint, age interval) returns bigint language plpgsql set search_path = ${s} as $$
declare
  upto bigint;
  gone bigint;
begin
  delete from removals where epoch in (
    select d.epoch from removals d join removals c on c.epoch = d.epoch and c.kind = 'condemned'
    where d.kind = 'removed' and not exists (select from segments where segments.position <= c.position)
  );
  insert into doomed (id) select x.object from lists x, head h group by x.object
    having bool_and(x.position < h.first and not exists (select from removals r where r.position = x.position))
    on conflict do nothing;
  delete from lists where object in (select id from doomed);
  delete from sessions where lease < clock_timestamp() - age;
  select max(l.position) into upto from log l, head h
    where l.position <= h.position - keep and l.position < h.first + ${TRIM_COMMITS} and l.at < clock_timestamp() - age;
  if upto is null then return 0; end if;
  update head set first = greatest(first, upto + 1);
  delete from log where position <= upto;
  get diagnostics gone = row_count;
  return gone;
end $$;
`;

const functions = (schema: string): string =>
  otherFunctions(quoted(schema)) + appendFunction(quoted(schema), `${schema}_news`);

/** Returns all statements that create a new store. */
export const schemaText = (schema: string): string => tables(quoted(schema)) + functions(schema);

const dropFunctions = (schema: string): string => `
do $$ declare
  f regprocedure;
begin
  for f in select oid::regprocedure from pg_proc where pronamespace = '${quoted(schema)}'::regnamespace loop
    execute 'drop function ' || f;
  end loop;
end $$`;

/**
 * Creates missing tables, and upgrades those of an older program. Only one host does so at a time.
 *
 * @throws NodeError for a newer version, and for an older version while hosts use it; the latter
 * can be tried again
 */
export async function prepareSchema(sql: Sql, schema: string): Promise<void> {
  const s = quoted(schema);
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended(${`modhost ${schema}`}, 0))`;
    await tx.unsafe(`create schema if not exists ${s}`);
    await tx.unsafe(`create table if not exists ${s}.version (version integer not null)`);
    // The row lock prevents hosts from joining in the meantime.
    const [row] = await tx.unsafe(`select version from ${s}.version for update`);
    const found = row === undefined ? undefined : Number(row.version);
    if (found === SCHEMA_VERSION) return;
    if (found === undefined) {
      await tx.unsafe(schemaText(schema));
      await tx.unsafe(`insert into ${s}.version values (${SCHEMA_VERSION})`);
      return;
    }
    if (found > SCHEMA_VERSION) throw newer(schema, found);
    const hosts = await tx.unsafe(
      `select string_agg(distinct name, ', ') as names from ${s}.sessions where not ended and lease > clock_timestamp()`,
    );
    const names = hosts[0]?.names as string | null;
    if (names !== null) throw inUse(schema, found, names);
    for (let version = found; version < SCHEMA_VERSION; version += 1) {
      const migrate = migrations[version];
      if (migrate === undefined)
        throw failure("SCHEMA_UNSUPPORTED", {
          reason: `schema ${schema} has version ${version}, which no program had`,
        });
      await tx.unsafe(migrate(s));
    }
    await tx.unsafe(dropFunctions(schema));
    await tx.unsafe(functions(schema));
    await tx.unsafe(`update ${s}.version set version = ${SCHEMA_VERSION}`);
  });
}

/** Returns the error for a host whose program is older than the tables. */
export const newer = (schema: string, version: number | string): NodeError =>
  failure("SCHEMA_UNSUPPORTED", {
    reason: `schema ${schema} of the database has version ${version}, and this program knows ${SCHEMA_VERSION}: another host has upgraded it with a newer program. Install that version here, too`,
  });

const inUse = (schema: string, version: number, hosts: string): NodeError =>
  failure("SCHEMA_IN_USE", { schema, version, own: SCHEMA_VERSION, hosts });
