/** Opens the log in PostgreSQL. */
import { LogClient } from "../log_client.ts";
import type { SqlCounts } from "./connection.ts";
import { SqlEngine } from "./engine.ts";
import { type SqlLogOptions, sqlSettings } from "./settings.ts";

export interface SqlLog {
  readonly log: LogClient;
  /**
   * The name of the store. Two stores with the same name are identical, or one is a backup of the
   * other.
   */
  readonly store: string;
  /** Whether no host had committed anything when the log was opened. */
  readonly isNew: boolean;
  readonly counts: SqlCounts;
}

/**
 * Opens the log of a store, and creates its tables when they are missing.
 * @throws NodeError STORE_UNAVAILABLE
 */
export async function openSqlLog(options: SqlLogOptions): Promise<SqlLog> {
  const engine = new SqlEngine(sqlSettings(options.url), options);
  await engine.open().catch(async (error: unknown) => {
    await engine.close();
    throw error;
  });
  const log = new LogClient((events) => {
    engine.begin(events);
    return engine;
  });
  return { log, store: engine.name, isNew: engine.isNew, counts: engine.counts };
}
