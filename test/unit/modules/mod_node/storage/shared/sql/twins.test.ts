/** Two hosts of a store with one identity, as after a repo was copied. */
import { test } from "node:test";
import { openSqlLog } from "#node/storage/shared/sql/open.ts";
import { noPostgres, Postgres } from "#test/support/engines/postgres.ts";
import { eventually } from "#test/support/eventually.ts";

test("two hosts with one identity notice each other", {
  skip: noPostgres,
}, async () => {
  await using database = await Postgres.start();
  const found = new Map<string, Set<string>>();
  const open = async (name: string) => {
    const reports = new Set<string>();
    found.set(name, reports);
    const { log } = await openSqlLog({
      url: database.url(),
      name,
      peer: "same",
      // A short lease, so that the check runs every 300 ms, but long enough for a busy machine.
      pollMs: 50,
      leaseMs: 10_000,
      onTwin: (twin) => reports.add(twin),
    });
    return log;
  };
  const first = await open("first");
  const second = await open("second");
  try {
    await eventually("both know of each other", () => {
      return found.get("first")?.has("second") === true && found.get("second")?.has("first") === true;
    });
  } finally {
    await Promise.all([first.close(), second.close()]);
  }
});
