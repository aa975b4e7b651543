/** A database that is up, and takes no writes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { Line, SqlCounts } from "#node/storage/shared/sql/line.ts";
import { openSqlLog } from "#node/storage/shared/sql/open.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";
import { eventually } from "#test/support/eventually.ts";

const value = new Uint8Array(1);

test("a read-only database is told as one that takes no writes, of which nothing can have taken place", {
  skip: noPostgres,
}, async () => {
  await using first = await Postgres.start();
  await using second = await Postgres.start();
  const lineTo = (url: string) => new Line(sqlSettings(url), { name: "test", counts: new SqlCounts() });
  const line = lineTo(first.url());
  const setReadOnly = async (is: "on" | "off") => {
    await line.run((sql) => sql.unsafe(`alter system set default_transaction_read_only = ${is}`), 60_000);
    await line.run((sql) => sql.unsafe("select pg_reload_conf()"), 60_000);
  };
  const { log } = await openSqlLog({ url: first.url(), name: "one", peer: "one", pollMs: 50, commitMs: 1000 });
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

    // Another address may be of one that takes writes.
    const both = lineTo(`postgres://postgres@127.0.0.1:${port},127.0.0.1:${second.port}/postgres`);
    await both.run((sql) => sql.unsafe("create table made ()"), 60_000);
    both.close();

    await setReadOnly("off");
    await eventually("writes are taken again", () => metadata.compareAndSet("b", undefined, value).catch(() => false));
  } finally {
    line.close();
    await metadata.close();
    await log.close();
  }
});

test("a standby is told as one, with what to do", { skip: noPostgres }, async () => {
  await using first = await Postgres.start();
  await using standby = await first.standby();
  const line = new Line(sqlSettings(standby.url()), { name: "test", counts: new SqlCounts() });
  await assert.rejects(
    line.run((sql) => sql.unsafe("create table made ()"), 3000, ": it may have taken place"),
    (error: Error) => {
      assert.match(
        error.message,
        /takes no writes: it is a standby\. Promote it, or name the server that takes writes/,
      );
      assert.doesNotMatch(error.message, /may have taken place/);
      return true;
    },
  );
  line.close();
});
