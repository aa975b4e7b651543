import assert from "node:assert/strict";
import { test } from "node:test";
import connect from "postgres";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { s3Settings } from "#node/storage/shared/settings.ts";
import { FaultyTcp } from "#test/support/engines/faulty_tcp.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";

test("each test gets an empty store on the engines of its process", { skip: noSharedStore }, async () => {
  const one = await sharedStore();
  const other = await sharedStore();
  assert.equal(one.sql, other.sql);
  assert.notEqual(one.settings.sql, other.settings.sql);
  for (const { settings } of [one, other]) {
    const objects = openS3(s3Settings(settings), {});
    await objects.check();
    assert.equal(await objects.putNew("a", Buffer.from(settings.sql)), "written");
    await objects.close();
    const sql = connect(settings.sql.replace(/\?.*/, ""));
    assert.deepEqual([...(await sql`SELECT 1 AS one`)], [{ one: 1 }]);
    await sql.end();
  }
});

test("a commit whose response is lost has been made, and a connection recovers from a network that was cut or swallowed data", {
  skip: noSharedStore,
}, async () => {
  const { sql: server } = await sharedStore();
  await using network = await FaultyTcp.start(server.port);
  const url = server.url().replace(`:${server.port}/`, `:${network.port}/`);
  const sql = connect(url, { max: 1, onnotice: () => {}, backoff: () => 0.05 });
  await sql`CREATE TABLE lost (value int)`;
  const lost = network.loseResponse(/COMMIT\0/);
  await assert.rejects(
    sql.begin((inside) => inside`INSERT INTO lost VALUES (1)`),
    /ECONNRESET|CONNECTION_CLOSED/,
  );
  await lost;
  assert.deepEqual([...(await sql`SELECT value FROM lost`)], [{ value: 1 }]);
  network.swallow();
  const waiting = sql`SELECT 2 AS two`;
  let hasResponse = false;
  const response = waiting.then((rows) => {
    hasResponse = true;
    return [...rows];
  });
  await new Promise((later) => setTimeout(later, 50));
  assert.equal(hasResponse, false);
  network.restore();
  assert.deepEqual(await response, [{ two: 2 }]);
  await sql.end();
});
