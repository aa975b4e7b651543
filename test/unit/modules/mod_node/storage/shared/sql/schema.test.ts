import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, test } from "node:test";
import connect from "postgres";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { openSqlLog, type SqlLog } from "#node/storage/shared/sql/open.ts";
import { prepareSchema, SCHEMA_VERSION, schemaText } from "#node/storage/shared/sql/schema.ts";
import type { NodeError } from "#node/util/errors.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";

/** Hashes of the text of each version, from the second one on. */
const HASHES: Readonly<Record<number, string>> = {
  2: "639fac7dfee4e514",
  3: "697e3f78d00bd3f0",
};

const skip = noSharedStore;
let peers = 0;
const opened: SqlLog[] = [];
// Also closes the connections of failed tests, because they would keep the process alive.
after(() => Promise.allSettled(opened.map(({ log }) => log.close())));

async function open(url: string, name = "one"): Promise<SqlLog> {
  const made = await openSqlLog({ url, name, peer: `peer ${(peers += 1)}` });
  opened.push(made);
  return made;
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text));

/** Runs with its own connection. */
async function ask(url: string, query: string): Promise<void> {
  const { searchParams } = new URL(url);
  const sql = connect(url.replace(/\?.*$/, ""), { max: 1 });
  await sql.unsafe(query.replaceAll("SCHEMA", `${searchParams.get("schema")}`)).finally(() => sql.end());
}

async function value({ log }: SqlLog): Promise<string> {
  const metadata = await SharedMetadata.open(log, memoryMetadata());
  const found = await metadata.get("kept");
  await metadata.close();
  return Buffer.from(found ?? []).toString();
}

test("a change of the tables and functions requires another version", () => {
  const hash = createHash("sha256").update(schemaText("store")).digest("hex").slice(0, 16);
  assert.equal(hash, HASHES[SCHEMA_VERSION], "raise SCHEMA_VERSION, and record the hash of its text here");
});

test("tables of an older program are upgraded with their content by one host, when no host uses them", {
  skip,
}, async () => {
  const { settings } = await sharedStore();
  const url = settings.sql;
  const old = await open(url, "old host");
  await old.log.commit(() => ({
    entries: [{ kind: "metadata", changes: [["kept", bytes("value")]] }],
    result: undefined,
  }));
  // The schema of that program: a function with other parameters, and one table less.
  await ask(
    url,
    `update SCHEMA.version set version = 1; drop table SCHEMA.lists; drop function SCHEMA.beat;
     create function SCHEMA.beat(other text) returns integer language sql as 'select 1'`,
  );
  await assert.rejects(open(url), (error: NodeError) => {
    assert.match(
      error.message,
      /has version 1, and this program upgrades it to version \d+ when no host uses it: stop old host/,
    );
    return error.kind === "unavailable";
  });
  await ask(url, "update SCHEMA.sessions set ended = true");
  const hosts = await Promise.all([open(url), open(url), open(url)]);
  for (const host of hosts) assert.equal(await value(host), "value");
  for (const { log } of [old, ...hosts]) await log.close();
});

test("a program that is older than the tables is refused immediately with the remedy", { skip }, async () => {
  const { settings } = await sharedStore();
  const url = settings.sql;
  const first = await open(url);
  await ask(url, "update SCHEMA.version set version = 99");
  await assert.rejects(open(url), (error: NodeError) => {
    assert.match(error.message, /has version 99, and this program knows \d+: .*Install that version here, too/);
    return error.kind === "failure";
  });
  await first.log.close();
  // A program that reads the version just before the upgrade, and joins after it.
  const sql = connect(url.replace(/\?.*$/, ""), { max: 1, onnotice: () => {} });
  const schema = `${new URL(url).searchParams.get("schema")}_late`;
  await prepareSchema(sql as never, schema);
  await sql.unsafe(`update "${schema}".version set version = 99`);
  const [joined] = await sql.unsafe(
    `select "${schema}".join_store('late', 'peer', '30 s', true, ${SCHEMA_VERSION}) as id`,
  );
  assert.equal(joined?.id, null);
  await sql.end();
});
