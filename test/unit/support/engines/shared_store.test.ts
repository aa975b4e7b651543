import assert from "node:assert/strict";
import { test } from "node:test";
import connect from "postgres";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { s3Settings } from "#node/storage/shared/settings.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";

test("each test gets an empty store on the engines of its process", { skip: noSharedStore }, async () => {
  const [one, other] = [await sharedStore(), await sharedStore()];
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
