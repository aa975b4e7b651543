/** A database that is up and refuses writes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { openSqlLog } from "#node/storage/shared/sql/open.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import type { NodeError } from "#node/util/errors.ts";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";
import { eventually } from "#test/support/eventually.ts";

const value = new Uint8Array(1);

test("a read-only database is reported as refusing writes, without doubt about the effect of a call", {
  skip: noPostgres,
}, async () => {
  await using first = await Postgres.start();
  await using second = await Postgres.start();
  const lineTo = (url: string) => new SqlConnection(sqlSettings(url), { name: "test", counts: new SqlCounts() });
  const line = lineTo(first.url());
  const setReadOnly = async (is: "on" | "off") => {
    await line.run((sql) => sql.unsafe(`alter system set default_transaction_read_only = ${is}`), 60_000);
    await line.run((sql) => sql.unsafe("select pg_reload_conf()"), 60_000);
  };
  const { log } = await openSqlLog({ url: first.url(), name: "one", peer: "one", pollMs: 50, commitMs: 60_000 });
  const metadata = await SharedMetadata.open(log, memoryMetadata());
  try {
    assert.equal(await metadata.compareAndSet("a", undefined, value), true);
    await setReadOnly("on");
    let refusal: Error | undefined;
    await eventually("a commit is refused", async () => {
      refusal = await metadata.compareAndSet(`${Math.random()}`, undefined, value).then(
        () => undefined,
        (error: Error) => error,
      );
      return refusal !== undefined;
    });
    assert.equal((refusal as { code?: string } | undefined)?.code, "STORE_READ_ONLY");
    const { port } = new URL(first.url());
    assert.match(
      String(refusal),
      new RegExp(`the database at 127.0.0.1:${port}: .*read-only transaction.*Remedy: set`),
    );
    assert.doesNotMatch(String(refusal), /may have taken place/);
    assert.deepEqual(await metadata.get("a"), value);

    // Another address may belong to a server that accepts writes.
    const both = lineTo(`postgres://postgres@127.0.0.1:${port},127.0.0.1:${second.port}/postgres`);
    await both.run((sql) => sql.unsafe("create table made ()"), 60_000);
    both.close();

    await setReadOnly("off");
    await eventually("writes are accepted again", () =>
      metadata.compareAndSet("b", undefined, value).catch(() => false),
    );
    await log.tryWriting();
    assert.equal((await line.run((sql) => sql`select position from modhost.log where position < 0`, 60_000)).length, 0);

    // Simulates a table that cannot grow.
    await line.run(
      (sql) =>
        sql.unsafe(`create function full_disk() returns trigger language plpgsql as
          $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
          create trigger full_disk before insert on modhost.log for each row execute function full_disk()`),
      60_000,
    );
    for (const write of [() => metadata.compareAndSet("c", undefined, value), () => log.tryWriting()]) {
      await assert.rejects(write(), (error: NodeError) => {
        assert.equal(error.code, "STORE_READ_ONLY");
        assert.match(error.message, /could not extend file: No space left on device\. Remedy: free space on the disk/);
        assert.doesNotMatch(error.message, /may have taken place/);
        return true;
      });
    }
    assert.deepEqual(await metadata.get("b"), value);
    await line.run((sql) => sql.unsafe("drop trigger full_disk on modhost.log"), 60_000);
    await log.tryWriting();
    assert.equal(await metadata.compareAndSet("c", undefined, value), true);
  } finally {
    line.close();
    await metadata.close();
    await log.close();
  }
});

test("a standby is reported as one, with the remedy", { skip: noPostgres }, async () => {
  await using first = await Postgres.start();
  await using standby = await first.standby();
  const line = new SqlConnection(sqlSettings(standby.url()), { name: "test", counts: new SqlCounts() });
  await assert.rejects(
    line.run((sql) => sql.unsafe("create table made ()"), 3000, ": it may have taken place"),
    (error: Error) => {
      assert.match(
        error.message,
        /accepts no writes: it is a standby\. Promote it, or name the server that accepts writes/,
      );
      assert.doesNotMatch(error.message, /may have taken place/);
      return true;
    },
  );
  line.close();
});
