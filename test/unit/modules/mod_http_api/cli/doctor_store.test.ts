/** Findings of the doctor in a store that several hosts share. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import postgres from "postgres";
import type { Installation } from "#core/cli/doctor/check.ts";
import { checksOfStore } from "#modules/mod_http_api/cli/node/store_checks.ts";
import { openNode } from "#node/node/open.ts";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { type SharedStoreSettings, s3Settings } from "#node/storage/shared/settings.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { eventually } from "#test/support/eventually.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

const skip = noSharedStore;
const GIB = 2 ** 30;

interface Given {
  /** Long enough that a busy machine causes no finding. */
  readonly waitMs?: number;
  readonly running?: { readonly pid: number };
  readonly free?: number;
}

/** Returns the findings for a host with these settings whose data is in the folder. */
async function found(
  data: string,
  store: SharedStoreSettings,
  { waitMs = 60_000, running, free = 100 * GIB }: Given = {},
) {
  const config = { directory: data, raw: () => undefined, value: () => store };
  const system = { now: Date.now, space: () => ({ type: 0, free, files: 0, freeFiles: 0 }) };
  const installation = { data, config, running, system } as unknown as Installation;
  const lines: string[] = [];
  for (const { name, run } of checksOfStore(waitMs))
    for (const { level, text, remedy } of await run(installation))
      lines.push(`${name}: ${level}: ${text} -> ${remedy}`);
  return lines.filter((line) => !isOfTests(line)).join("\n");
}

/** The database of the tests runs without flushing. */
const isOfTests = (line: string) => /synchronous_commit or fsync is off/.test(line);

test("nothing is found before the first host starts, nor while one runs", { skip }, async (t) => {
  const data = await folderOf(t, {});
  const { settings } = await sharedStore();
  assert.equal(await found(data, settings), "");
  const node = await openNode({ repo: join(data, "repo"), store: settings, offline: true });
  try {
    const running = { pid: process.pid };
    // On a busy machine the session of the host may need another moment.
    await eventually("nothing is found", async () => (await found(data, settings, { running })) === "", { every: 500 });
  } finally {
    await node.close();
  }
  assert.match(await found(data, settings, { running: { pid: 1 } }), /^shared hosts: problem: .* has no session/);
});

test("an unreachable database and object store, and a missing bucket, are problems", { skip }, async (t) => {
  const data = await folderOf(t, {});
  const { settings } = await sharedStore();
  const away = { ...settings, sql: "postgres://nobody@127.0.0.1:1/none", s3: "s3://no-such-bucket/x" };
  const text = await found(data, away, { waitMs: 100 });
  assert.match(text, /^shared database: problem: .*127\.0\.0\.1:1.*-> start the database, or correct sql/m);
  assert.match(text, /^shared objects: problem: .*NoSuchBucket.*-> create the bucket, or name another one/m);
  assert.doesNotMatch(text, /shared (cache|hosts)/);
});

test("a role without rights, tables of another version, and objects of another store are problems", {
  skip,
}, async (t) => {
  const data = await folderOf(t, {});
  const { settings, sql } = await sharedStore();
  const other = await sharedStore();
  for (const [at, store] of [settings, other.settings].entries()) {
    const node = await openNode({ repo: join(data, `repo${at}`), store, offline: true });
    await node.close();
  }
  assert.match(
    await found(data, { ...settings, s3: other.settings.s3 }),
    /^shared objects: problem: The objects belong to the store \S+, but the database belongs to \S+ -> correct s3 or sql/m,
  );
  assert.match(
    await found(data, { ...settings, s3: `${settings.s3}-none` }),
    /^shared objects: problem: .*do not exist/m,
  );

  const admin = postgres(sql.url(), { max: 1, onnotice: () => {} });
  t.after(() => admin.end());
  const schema = new URL(settings.sql).searchParams.get("schema") ?? "";
  await admin.unsafe(`drop role if exists reader; create role reader login; grant usage on schema ${schema} to reader;
    grant select on all tables in schema ${schema} to reader`);
  const asReader = { ...settings, sql: settings.sql.replace("postgres@", "reader@") };
  assert.match(
    await found(data, asReader),
    /^shared database: problem: This role may not insert in head and \d+ more .*-> let all hosts use the role/m,
  );
  await admin.unsafe("alter role reader set default_transaction_read_only = on");
  assert.match(
    await found(data, asReader),
    /^shared database: problem: The database accepts no writes: default_transaction_read_only is on -> set it to off/m,
  );
  await admin.unsafe(`update ${schema}.version set version = 99`);
  assert.match(
    await found(data, settings),
    /^shared database: problem: The schema \S+ has version 99.*-> update modhost here/m,
  );
});

test("a full disk, keys that this host lacks, a vanished host, and a partly copied repo are reported", {
  skip,
}, async (t) => {
  const data = await folderOf(t, {});
  const { settings, sql } = await sharedStore();
  const keys_secret = join(data, "secret");
  const wrong = join(data, "wrong");
  await writeFile(keys_secret, "sixteen characters and more", { mode: 0o600 });
  await writeFile(wrong, "sixteen other characters", { mode: 0o644 });
  const node = await openNode({ repo: join(data, "other"), store: { ...settings, keys_secret }, offline: true });
  await node.keys.generate("mine", { type: "ed25519" });
  await node.metadata.transaction((writer) =>
    writer.put("node/migrating/x", Buffer.from(JSON.stringify({ folder: "/srv/repo" }))),
  );
  await node.close();
  const admin = postgres(sql.url(), { max: 1, onnotice: () => {} });
  t.after(() => admin.end());
  const schema = new URL(settings.sql).searchParams.get("schema") ?? "";
  await admin.unsafe(
    `insert into ${schema}.sessions (name, peer, lease) values ('lost', 'Qm1', now() - interval '1 minute')`,
  );
  await mkdir(join(data, "repo"));
  const twin = await openNode({ repo: join(data, "twin", "repo"), offline: true });
  const peer = String(twin.repo.identity.peerId);
  await twin.close();
  const begin = `insert into ${schema}.sessions (name, peer, lease) values`;
  await admin.unsafe(
    `${begin} ('a', '${peer}', now() + interval '1 hour'), ('b', '${peer}', now() + interval '1 hour')`,
  );
  assert.match(
    await found(join(data, "twin"), settings),
    /^shared hosts: problem: a and b have the same identity, \S+: .*-> stop one of the hosts/m,
  );
  const text = await found(data, settings, { free: GIB });
  assert.match(
    text,
    /^shared cache: warning: .* may grow to 10\.7 GB, has 0 B, and only 1\.1 GB are free -> make room/m,
  );
  assert.match(text, /^shared keys: warning: Hosts share 1 key for names.*-> set keys_secret/m);
  assert.match(text, /^shared hosts: warning: The session of the host lost \(Qm1\) ended \d+ s ago/m);
  assert.match(text, /^shared hosts: warning: Only a part of the repo \/srv\/repo/m);
  assert.doesNotMatch(await found(data, { ...settings, keys_secret }), /^shared keys/m);
  const secret = await found(data, { ...settings, keys_secret: wrong });
  assert.match(secret, /^shared keys: problem: .*-> use the same file for keys_secret of node_store on every host/m);
  assert.match(secret, /^shared keys: warning: Other users can read .*wrong -> chmod 600/m);
});

test("the check leaves nothing in the object store", { skip }, async (t) => {
  const data = await folderOf(t, {});
  const { settings } = await sharedStore();
  await found(data, settings);
  const objects = openS3(s3Settings(settings));
  const listed = (await Array.fromAsync(objects.list(""))).flat();
  await objects.close();
  assert.deepEqual(listed, []);
});
