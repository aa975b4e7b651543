/** A store for several hosts, for tests: PostgreSQL and an S3 server of this process, which end with it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SharedStoreSettings } from "#node/storage/shared/settings.ts";
import { noPostgres, Postgres } from "./postgres.ts";
import { S3Server } from "./s3_server.ts";

/** Why there is none here, to be given as `skip`; false where there is. */
export const noSharedStore: string | false = noPostgres;

/** As the option `node_store` has them. */
export type StoreSettings = Pick<Required<SharedStoreSettings>, "s3" | "endpoint" | "region" | "credentials" | "sql">;

export interface SharedStore {
  readonly settings: StoreSettings;
  readonly sql: Postgres;
  readonly s3: S3Server;
}

interface Engines {
  readonly sql: Postgres;
  readonly s3: S3Server;
  readonly credentials: string;
}

let engines: Promise<Engines> | undefined;
let count = 0;

/**
 * Each call gives another empty store: a schema and a prefix of its own, on the engines that all tests of the process
 * share. A test that stops or kills an engine has one of its own: `Postgres.start()`, `S3Server.start()`.
 */
export async function sharedStore(): Promise<SharedStore> {
  const { sql, s3, credentials } = await (engines ??= startEngines());
  count += 1;
  const settings = {
    s3: `s3://bucket/store${count}`,
    endpoint: s3.endpoint,
    region: "us-east-1",
    credentials,
    sql: `${sql.url()}?schema=store${count}`,
  };
  return { settings, sql, s3 };
}

async function startEngines(): Promise<Engines> {
  const s3 = await S3Server.start("bucket");
  s3.unref();
  const sql = await Postgres.start();
  const folder = mkdtempSync(join(tmpdir(), "modhost-credentials-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const [user] = s3.users;
  const credentials = join(folder, "credentials");
  const values = { AccessKeyId: user?.accessKeyId, SecretAccessKey: user?.secretAccessKey };
  writeFileSync(credentials, JSON.stringify(values), { mode: 0o600 });
  return { sql, s3, credentials };
}
