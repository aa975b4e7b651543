import assert from "node:assert/strict";
import { test } from "node:test";
import connect from "postgres";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";

const query = async (server: Postgres, text: string) => {
  const sql = connect(server.url(), { max: 1, onnotice: () => {} });
  try {
    return (await sql.unsafe(text)).map((row) => Object.values(row)[0]);
  } finally {
    await sql.end();
  }
};

test("PostgreSQL keeps what was committed over a kill, and a standby that is promoted has it, too", {
  skip: noPostgres,
}, async () => {
  await using server = await Postgres.start();
  await query(server, "CREATE TABLE kept (value int); INSERT INTO kept VALUES (1)");
  await server.kill();
  await assert.rejects(query(server, "SELECT 1"), /ECONNREFUSED/);
  await server.start();
  assert.deepEqual(await query(server, "SELECT value FROM kept"), [1]);
  await using standby = await server.standby({ synchronous: true });
  await query(server, "INSERT INTO kept VALUES (2)");
  assert.deepEqual(await query(standby, "SELECT value FROM kept"), [1, 2]);
  await assert.rejects(query(standby, "INSERT INTO kept VALUES (3)"), /read-only/);
  await server.kill();
  await standby.promote();
  await query(standby, "INSERT INTO kept VALUES (3)");
  assert.deepEqual(await query(standby, "SELECT value FROM kept"), [1, 2, 3]);
});
