import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import connect from "postgres";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";
import { accepts, endsWithUs } from "#test/support/engines/programs.ts";
import { eventually } from "#test/support/eventually.ts";

const query = async (server: Postgres, text: string) => {
  const sql = connect(server.url(), { max: 1, onnotice: () => {} });
  try {
    return (await sql.unsafe(text)).map((row) => Object.values(row)[0]);
  } finally {
    await sql.end();
  }
};

test("committed rows survive a kill of PostgreSQL, and a promoted standby has them, too", {
  skip: noPostgres,
}, async () => {
  await using server = await Postgres.start();
  await query(server, "CREATE TABLE kept (value int); INSERT INTO kept VALUES (1)");
  const open = connect(server.url(), { max: 1 });
  await open`SELECT 1`;
  server.freeze();
  const frozen = [query(server, "SELECT 7"), open`SELECT 8 AS n`.then(([row]) => row?.n)];
  // Earlier connections get no response, either.
  assert.equal(await Promise.race([...frozen, sleep(300, "none")]), "none");
  server.thaw();
  assert.deepEqual(await Promise.all(frozen), [[7], 8]);
  await open.end();
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

test("PostgreSQL servers of one run start from copies of the same files and have data of their own", {
  skip: noPostgres,
}, async (t) => {
  const run = await mkdtemp(join(tmpdir(), "modhost-of-run-"));
  const { TEST_RUN_FOLDER: before } = process.env;
  t.after(async () => {
    if (before === undefined) delete process.env.TEST_RUN_FOLDER;
    else process.env.TEST_RUN_FOLDER = before;
    await rm(run, { recursive: true });
  });
  await chmod(run, 0o755);
  process.env.TEST_RUN_FOLDER = run;
  await using one = await Postgres.start();
  await query(one, "CREATE TABLE own (value int)");
  await using other = await Postgres.start();
  const made = "SELECT system_identifier FROM pg_control_system()";
  assert.deepEqual(await query(other, made), await query(one, made));
  assert.deepEqual(await query(other, "SELECT count(*) FROM pg_class WHERE relname = 'own'"), ["0"]);
  assert.deepEqual(await readdir(run), ["postgres"]);
});

const unbound = noPostgres || (endsWithUs ? false : "this system has no setpriv");

test("PostgreSQL ends with the process that started it, even if that is killed", { skip: unbound }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-killed-"));
  // PostgreSQL may run as another user.
  await chmod(folder, 0o755);
  const program = `
    import { Postgres } from "#test/support/engines/postgres.ts";
    const server = await Postgres.start();
    console.log(server.port);
    setInterval(() => {}, 1000);`;
  const words = ["--conditions=source", "--input-type=module", "--eval", program];
  const env = { ...process.env, TMPDIR: folder };
  const child = spawn(process.execPath, words, { env, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(line);
  assert.equal(await accepts(port), true);
  child.kill("SIGKILL");
  await eventually("it no longer listens", async () => !(await accepts(port)));
  await rm(folder, { recursive: true, maxRetries: 20 });
});
