import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";
import { encodeEntries } from "#node/storage/shared/entries.ts";
import type { Applier, Commit } from "#node/storage/shared/log.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { openSqlLog } from "#node/storage/shared/sql/open.ts";
import { SCHEMA_VERSION } from "#node/storage/shared/sql/schema.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";
import { eventually } from "#test/support/eventually.ts";

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

let server: Postgres | undefined;
after(async () => server?.[Symbol.asyncDispose]());

/** Returns the URL of a database without anything from an earlier test. */
async function emptySchema(): Promise<string> {
  server ??= await Postgres.start();
  const line = new SqlConnection(sqlSettings(server.url()), { name: "test", counts: new SqlCounts() });
  await line.run((sql) => sql.unsafe("drop schema if exists restored cascade"), 10_000);
  line.close();
  return `${server.url()}?schema=restored`;
}

/**
 * The database as it was after its first commit, with the commits of another host, which got the
 * same session, since then.
 */
async function goBack(url: string, keys: readonly string[]): Promise<void> {
  const line = new SqlConnection(sqlSettings(url), { name: "test", counts: new SqlCounts() });
  await line.run(async (sql) => {
    await sql.begin(async (tx) => {
      await tx.unsafe("set local search_path = restored");
      await tx.unsafe("select from head for update");
      await tx.unsafe("delete from log where position > 1; delete from metadata where position > 1");
      await tx.unsafe("update head set position = 1; delete from sessions");
      await tx.unsafe("alter table sessions alter column id restart with 1");
      await tx.unsafe(`select join_store('c', 'c', '1 hour', false, ${SCHEMA_VERSION})`);
      for (const [at, key] of keys.entries()) {
        const entries = encodeEntries([{ kind: "metadata", changes: [[key, bytes("1")]] }]);
        await tx.unsafe(
          "select append($1::bigint, 1, $2::uuid, false, '[]', $3::bytea, array[$4::bytea], array[$5::bytea], '[]', 10)",
          [at + 1, randomUUID(), entries, Buffer.from(key), Buffer.from("1")],
        );
      }
    });
  }, 10_000);
  line.close();
}

for (const length of ["longer than", "as long as"]) {
  test(`commits that the database has lost are dropped by hosts where its new history is ${length} the old one`, {
    skip: noPostgres,
  }, async () => {
    const url = await emptySchema();
    const { log } = await openSqlLog({ url, name: "a", peer: "a", pollMs: 50 });
    const metadata = await SharedMetadata.open(log, memoryMetadata());
    try {
      for (const key of ["kept", "lost1", "lost2"]) await metadata.compareAndSet(key, undefined, bytes("1"));
      assert.equal(log.session, 1);

      await goBack(url, length === "longer than" ? ["new1", "new2", "new3", "new4"] : ["new1", "new2"]);
      await eventually("it has joined again", async () => {
        await log.refresh().catch(() => {});
        return log.session !== 1;
      });
      await eventually("it can commit", () =>
        metadata.compareAndSet("own", undefined, bytes("1")).then(
          () => true,
          () => false,
        ),
      );
      for (const key of ["kept", "new1", "new2", "own"]) assert.equal(text(await metadata.get(key)), "1", key);
      for (const key of ["lost1", "lost2"]) assert.equal(await metadata.has(key), false, key);
    } finally {
      // A host that looks for its database keeps the process alive.
      await metadata.close();
      await log.close();
    }
  });
}

/** A copy that outlives its host. */
function survivor(store: MetadataStore): MetadataStore {
  return new Proxy(store, {
    get(target, key) {
      if (key === "close") return async () => undefined;
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A copy that is behind the other one. */
class Behind implements Applier {
  position = 0;
  commit: string | undefined;
  readonly keys = new Set<string>();
  apply({ position, id, entries }: Commit): void {
    this.position = position;
    this.commit = id;
    for (const entry of entries) if (entry.kind === "metadata") for (const [key] of entry.changes) this.keys.add(key);
  }
  reset(): void {
    this.keys.clear();
  }
}

for (const [length, keys] of [
  ["longer than", ["new1", "new2", "new3"]],
  ["as long as", ["new1", "new2"]],
  ["shorter than", ["new1"]],
] as const) {
  test(`a host that was down when commits were lost rebuilds its copies where the new history is ${length} the old one`, {
    skip: noPostgres,
  }, async () => {
    const url = await emptySchema();
    const copy = survivor(memoryMetadata());
    const behind = new Behind();
    const open = async (isFollowed: boolean) => {
      const { log } = await openSqlLog({
        url,
        name: "a",
        peer: "a",
        pollMs: 600_000,
        commitMs: 120_000,
        refreshMs: 120_000,
      });
      if (isFollowed) log.follow(behind);
      const metadata = await SharedMetadata.open(log, copy);
      const close = async () => {
        await metadata.close();
        await log.close();
      };
      return { log, metadata, close };
    };
    const before = await open(true);
    try {
      await before.metadata.compareAndSet("kept", undefined, bytes("1"));
    } finally {
      await before.close();
    }
    // Commits that one copy has and the other one lacks.
    const alone = await open(false);
    try {
      for (const key of ["lost1", "lost2"]) await alone.metadata.compareAndSet(key, undefined, bytes("1"));
    } finally {
      await alone.close();
    }
    await goBack(url, keys);
    const { log, metadata, close } = await open(true);
    try {
      await log.refresh();
      // Where the new history is shorter, this commit is at the position of a lost one.
      const other = await openSqlLog({ url, name: "b", peer: "b" });
      try {
        await other.log.commit(() => ({
          entries: [{ kind: "metadata", changes: [["others", bytes("1")]] }],
          result: undefined,
        }));
      } finally {
        await other.log.close();
      }
      await eventually("it can commit", () =>
        metadata.compareAndSet("own", undefined, bytes("1")).then(
          () => true,
          () => false,
        ),
      );
      const all = ["kept", ...keys, "others", "own"];
      for (const key of all) assert.equal(text(await metadata.get(key)), "1", key);
      for (const key of ["lost1", "lost2"]) assert.equal(await metadata.has(key), false, key);
      await log.refresh();
      assert.deepEqual([...behind.keys].sort(), all.sort());
      assert.equal(log.counts.snapshots, 1);
    } finally {
      await close();
    }
  });
}
