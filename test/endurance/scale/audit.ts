/**
 * Checks the engines when every host has ended: nothing is damaged, and after a sweep every object
 * is listed.
 */
import { join } from "node:path";
import connect from "postgres";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { openSharedBlocks } from "#node/storage/shared/segments/open.ts";
import { s3Settings } from "#node/storage/shared/settings.ts";
import { openSqlLog } from "#node/storage/shared/sql/open.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";

export interface Audit {
  readonly faults: readonly string[];
  /** Objects that killed hosts had left behind. */
  readonly orphans: number;
}

export async function auditStore(folder: string, settings: StoreSettings): Promise<Audit> {
  await endSessions(settings.sql);
  const { log } = await openSqlLog({ url: settings.sql, name: "audit", peer: "audit" });
  const objects = openS3(s3Settings(settings));
  const remove = async () => {
    throw new Error("an audit removes nothing");
  };
  const blocks = await openSharedBlocks({ folder: join(folder, "audit"), objects, log, remove });
  try {
    const faults: string[] = [];
    for await (const { object, fault } of blocks.upkeep.verify()) faults.push(`${object} ${fault}`);
    const orphans = (await blocks.upkeep.deleteOrphans()).length;
    for (const key of await blocks.upkeep.orphans()) faults.push(`${key} is left after the sweep`);
    return { faults, orphans };
  } finally {
    await blocks.close();
    await objects.close();
    await log.close();
  }
}

/** Ends the leases of killed hosts early. */
async function endSessions(settings: string): Promise<void> {
  const { url, addresses, schema } = sqlSettings(settings);
  const failures: unknown[] = [];
  for (const { host, port } of addresses) {
    const sql = connect(url.replace(/\?.*$/, ""), { host, port, max: 1 });
    try {
      await sql`update ${sql(schema)}.sessions set lease = clock_timestamp()`;
      return;
    } catch (error) {
      // This database is a standby: another one accepts writes.
      failures.push(error);
    } finally {
      await sql.end();
    }
  }
  throw new AggregateError(failures, "no database accepts writes");
}
