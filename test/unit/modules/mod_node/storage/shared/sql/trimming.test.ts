/**
 * The tables retain commits in the log, and the lists of blocks that collections wrote to the
 * object store.
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import connect from "postgres";
import type { Entry } from "#node/storage/shared/log.ts";
import type { LogClient } from "#node/storage/shared/log_client.ts";
import { openSqlLog } from "#node/storage/shared/sql/open.ts";
import type { SqlLogOptions } from "#node/storage/shared/sql/settings.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { eventually } from "#test/support/eventually.ts";

const skip = noSharedStore;
const opened: LogClient[] = [];
after(() => Promise.allSettled(opened.map((log) => log.close())));

const write = (...entries: readonly Entry[]) => ({ entries, result: undefined });
const sorted = (keys: readonly string[]) => [...keys].sort();

async function open(url: string, options: Partial<SqlLogOptions> = {}): Promise<LogClient> {
  const { log } = await openSqlLog({ url, name: "test", peer: "peer", keepMs: 3_600_000, ...options });
  opened.push(log);
  return log;
}

async function ask(url: string, query: string) {
  const schema = new URL(url).searchParams.get("schema");
  const sql = connect(url.replace(/\?.*$/, ""), { max: 1 });
  return await sql.unsafe(query.replaceAll("SCHEMA", `${schema}`)).finally(() => sql.end());
}

test("a log that grows by more than one trimming removes is trimmed until it is short enough", {
  skip,
}, async (t) => {
  const { settings } = await sharedStore();
  const url = settings.sql;
  const log = await open(url, { keepCommits: 10, keepMs: 0, pollMs: 50, refreshMs: 120_000 });
  await log.commit(() => write({ kind: "metadata", changes: [["a", new Uint8Array()]] }));
  await ask(
    url,
    `with more as (update SCHEMA.head set position = position + 3500)
     insert into SCHEMA.log (position, id, session, entries)
       select position + n, gen_random_uuid(), session, entries from SCHEMA.log, generate_series(1, 3500) n`,
  );
  const now = performance.now.bind(performance);
  // It is due once a minute.
  t.mock.method(performance, "now", () => now() + 61_000);
  await eventually("commits that need not stay are gone", async () => {
    const [found] = await ask(url, "select count(*)::integer as commits from SCHEMA.log");
    return found?.commits === 10;
  });
  await log.close();
});

test("a list of blocks stays while the log or a removal names it, and is deleted after the grace period", {
  skip,
}, async () => {
  const { settings } = await sharedStore();
  const log = await open(settings.sql);
  const trim = async () => {
    // The second trimming deletes the lists of commits that the first one deleted from the log.
    for (let times = 0; times < 2; times += 1) await ask(settings.sql, "select SCHEMA.trim_log(0, interval '0')");
  };
  const segment = (nth: number) => ({ id: `${log.session.toString(36)}-${nth}`, bytes: 1, blocks: 1 });
  const list = (name: string) => ({ object: `00/${name}.cids`, count: 300 });
  const condemned = list("a");
  const rescued = list("b");
  const back = list("c");
  await log.commit(() => write({ kind: "segment", segment: segment(1) }));
  await log.commit((upTo) => write({ kind: "condemned", epoch: 1, upTo, list: condemned }));
  await log.commit(() => write({ kind: "acknowledged", epoch: 1, rescued }));
  // The collection is not decided, so a host that starts from the rows reads both lists.
  await trim();
  assert.deepEqual(sorted(await log.lists()), [condemned.object, rescued.object]);
  await log.commit(() => write({ kind: "removed", epoch: 1, rescued: back }));
  await log.commit(() => write({ kind: "metadata", changes: [["later", new Uint8Array()]] }));
  await trim();
  // The segment may contain removed blocks, so the removal is still in the rows.
  assert.deepEqual(sorted(await log.lists()), [condemned.object, back.object]);
  assert.deepEqual(await log.deletableObjects(0), [rescued.object]);
  assert.deepEqual(await log.deletableObjects(3_600_000), []);
  await log.commit(() => write({ kind: "replaced", segments: [segment(1).id], by: [segment(2)] }));
  await trim();
  assert.deepEqual(await log.lists(), []);
  const gone = [condemned.object, back.object, rescued.object, segment(1).id].sort();
  assert.deepEqual(sorted(await log.deletableObjects(0)), gone);
  await log.markDeleted(gone);
  assert.deepEqual(await log.deletableObjects(0), []);
});

test("lists that an older program wrote are recorded by the upgrade, like lists that are written later", {
  skip,
}, async () => {
  const { settings } = await sharedStore();
  const url = settings.sql;
  const old = await open(url);
  await old.refresh();
  const lists = ["0a", "ff"].map((sum) => ({ object: `${sum}/${sum.repeat(32)}.cids`, count: 300 }));
  const [condemned, rescued] = lists as [(typeof lists)[0], (typeof lists)[0]];
  await old.commit((upTo) => ({
    entries: [{ kind: "condemned", epoch: 1, upTo, list: condemned }],
    result: undefined,
  }));
  await old.commit(() => ({ entries: [{ kind: "acknowledged", epoch: 1, rescued }], result: undefined }));
  await old.commit(() => ({ entries: [{ kind: "removed", epoch: 1, rescued: condemned }], result: undefined }));
  await old.close();
  await ask(url, "drop table SCHEMA.lists; update SCHEMA.version set version = 2");
  const log = await open(url);
  await log.refresh();
  assert.deepEqual([...(await log.lists())].sort(), lists.map(({ object }) => object).sort());
  await log.commit((upTo) => ({
    entries: [{ kind: "condemned", epoch: 2, upTo, list: { object: "aa/1-1.cids", count: 300 } }],
    result: undefined,
  }));
  assert.equal((await log.lists()).length, 3);
  await log.close();
});
