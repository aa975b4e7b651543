/** Encrypted connections to a database, as the parameters of its URL require. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";

test("a connection is encrypted and the server verified as sslmode and sslrootcert require", {
  skip: noPostgres,
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-tls-"));
  t.after(() => rm(folder, { recursive: true }));
  const own = await makeSelfSigned(["127.0.0.1"]);
  const other = await makeSelfSigned(["other.example"]);
  const ca = join(folder, "ca.pem");
  const otherCa = join(folder, "other.pem");
  await writeFile(ca, own.certificate);
  await writeFile(otherCa, other.certificate);
  await using database = await Postgres.start({ tls: own });
  const isEncrypted = async (parameters: string): Promise<boolean> => {
    const line = new SqlConnection(sqlSettings(`${database.url()}${parameters}`), {
      name: "test",
      counts: new SqlCounts(),
    });
    try {
      const [row] = await line.run((sql) => sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`, 2000);
      return row?.ssl === true;
    } finally {
      line.close();
    }
  };
  assert.equal(await isEncrypted(""), false);
  assert.equal(await isEncrypted("?sslmode=disable"), false);
  for (const mode of [
    "prefer",
    "require",
    `require&sslrootcert=${ca}`,
    `verify-ca&sslrootcert=${ca}`,
    `verify-full&sslrootcert=${ca}`,
  ]) {
    assert.equal(await isEncrypted(`?sslmode=${mode}`), true, mode);
  }
  // It is self-signed, signed by somebody else, or the file does not exist.
  for (const mode of [
    "verify-full",
    `verify-full&sslrootcert=${otherCa}`,
    `require&sslrootcert=${otherCa}`,
    "require&sslrootcert=/none",
  ]) {
    await assert.rejects(isEncrypted(`?sslmode=${mode}`), { code: "STORE_UNAVAILABLE" }, mode);
  }

  // A connection that is lost fails its call, and nothing else.
  const line = new SqlConnection(sqlSettings(`${database.url()}?sslmode=require`), {
    name: "test",
    counts: new SqlCounts(),
  });
  await line.run((sql) => sql`select 1`, 60_000);
  await database.kill();
  await assert.rejects(
    line.run((sql) => sql`select 1`, 500),
    { code: "STORE_UNAVAILABLE" },
  );
  line.close();
});
