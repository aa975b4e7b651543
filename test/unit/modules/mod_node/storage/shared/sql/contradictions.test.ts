/** Rows of the database that somebody has changed, or that are damaged. */
import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { openSqlLog } from "#node/storage/shared/sql/open.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";

/** A bug in this code usually makes it run forever. */
const bound = { skip: noPostgres, timeout: 120_000 };

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

let server: Postgres | undefined;
let count = 0;
after(async () => server?.[Symbol.asyncDispose]());

/** A store with five commits, the host that wrote them, and others. */
async function storeWith(t: TestContext) {
  server ??= await Postgres.start();
  count += 1;
  const schema = `rows${count}`;
  const url = `${server.url()}?schema=${schema}`;
  const join = async (name: string) => {
    const { log } = await openSqlLog({ url, name, peer: name, pollMs: 50 });
    const metadata = await SharedMetadata.open(log, memoryMetadata());
    t.after(() => metadata.close().finally(() => log.close()));
    return metadata;
  };
  const run = async (sql: string) => {
    const line = new SqlConnection(sqlSettings(url), { name: "test", counts: new SqlCounts() });
    await line.run((connection) => connection.unsafe(sql.replaceAll("S.", `${schema}.`)), 10_000);
    line.close();
  };
  const one = await join("one");
  for (const key of ["a", "b", "c", "d", "e"]) await one.compareAndSet(key, undefined, bytes(key));
  return { one, join, run };
}

for (const [name, damage] of [
  ["a commit is missing", "delete from S.log where position = 3"],
  ["the last commits are missing", "delete from S.log where position > 3"],
  ["a commit cannot be read", "update S.log set entries = '\\x00000004deadbeef' where position = 3"],
  ["a commit is cut off", "update S.log set entries = substring(entries for 9) where position = 5"],
  ["the head is beyond the log", "update S.head set position = position + 3"],
]) {
  test(`hosts follow the other rows and can commit where ${name}`, bound, async (t) => {
    const { one, join, run } = await storeWith(t);
    await run(damage as string);
    const other = await join("other");
    for (const host of [one, other])
      for (const key of ["a", "b", "c", "d", "e"]) assert.equal(text(await host.get(key)), key);
    assert.equal(await other.compareAndSet("f", undefined, bytes("f")), true);
    assert.equal(await one.compareAndSet("f", undefined, bytes("f")), false);
  });
}

test("a log that continues after its head is reported and blocks no call forever", bound, async (t) => {
  const { one, join, run } = await storeWith(t);
  await run("update S.head set position = 2");
  const contradicting = { code: "STORE_UNAVAILABLE", message: /contradict each other/ };
  await assert.rejects(one.get("a"), contradicting);
  // The host may be joining again, because commits that it knows seem to be lost.
  await assert.rejects(one.compareAndSet("f", undefined, bytes("f")), { kind: "unavailable" });
  await assert.rejects((await join("other")).get("a"), contradicting);
});
