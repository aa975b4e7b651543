/**
 * Statements outside the functions of the schema, so that changing them does not change its
 * version.
 */

const TEST_BYTES = 65_536;

/**
 * Writes as much as a commit may write, and rolls it back. A smaller test would not detect a full
 * disk, because existing pages may have room.
 */
export const writeTest = `do $$ begin
  insert into SCHEMA.log (position, id, session, entries) select -1, gen_random_uuid(), 0,
    decode(string_agg(md5(random()::text), ''), 'hex') from generate_series(1, ${TEST_BYTES / 16});
  raise exception using errcode = 'MH001';
exception when sqlstate 'MH001' then null; end $$`;

/** Selects living sessions of a peer, except for the given ones. */
export const twins = `select id, name from SCHEMA.sessions
  where peer = $1::text and not ended and lease > clock_timestamp()
    and not exists (select from jsonb_array_elements_text($2::text::jsonb) own where own = id::text) order by id`;
