/**
 * A store for several hosts in tests: PostgreSQL and an S3 server, which end with the process. The
 * S3 server is in memory, or it is the program that `SHARED_STORE_S3` names: `versitygw` or
 * `minio`.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SharedStoreSettings } from "#node/storage/shared/settings.ts";
import { noPostgres, Postgres } from "./postgres.ts";
import { s3Programs } from "./s3_programs.ts";
import { S3Server } from "./s3_server.ts";
import type { S3User } from "./s3_signature.ts";

/** The reason to skip tests of a shared store, for `skip`; false if it is available. */
export const noSharedStore: string | false = noPostgres || noNamedS3();

/** Settings in the form of the option `node_store`. */
export type StoreSettings = SharedStoreSettings &
  Readonly<Record<"s3" | "endpoint" | "region" | "credentials" | "sql", string>>;

export interface SharedStore {
  readonly settings: StoreSettings;
  readonly sql: Postgres;
}

interface Engines {
  readonly sql: Postgres;
  readonly endpoint: string;
  readonly credentials: string;
}

let engines: Promise<Engines> | undefined;
let count = 0;

/**
 * Returns a new, empty store: a schema and a prefix of its own, on engines that all tests of the
 * process share. A test that stops or kills an engine starts one of its own with `Postgres.start()`
 * or `S3Server.start()`.
 */
export async function sharedStore(): Promise<SharedStore> {
  const { sql, endpoint, credentials } = await (engines ??= startEngines());
  count += 1;
  const settings = {
    s3: `s3://bucket/store${count}`,
    endpoint,
    region: "us-east-1",
    credentials,
    sql: `${sql.url()}?schema=store${count}`,
  };
  return { settings, sql };
}

async function startEngines(): Promise<Engines> {
  const { endpoint, user } = await startS3();
  const sql = await Postgres.start();
  const folder = mkdtempSync(join(tmpdir(), "modhost-credentials-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const credentials = join(folder, "credentials");
  const values = { AccessKeyId: user.accessKeyId, SecretAccessKey: user.secretAccessKey };
  writeFileSync(credentials, JSON.stringify(values), { mode: 0o600 });
  return { sql, endpoint, credentials };
}

async function startS3(): Promise<{ readonly endpoint: string; readonly user: S3User }> {
  const named = namedS3();
  if (named !== undefined) return await named.start("bucket");
  const server = await S3Server.start("bucket");
  server.unref();
  const [user] = server.users as [S3User];
  return { endpoint: server.endpoint, user };
}

function noNamedS3(): string | false {
  const { SHARED_STORE_S3: name } = process.env;
  if (name === undefined) return false;
  return (
    namedS3()?.missing ?? `SHARED_STORE_S3 must be ${s3Programs.map((each) => each.name).join(" or ")}, not ${name}`
  );
}

function namedS3() {
  return s3Programs.find(({ name }) => name === process.env.SHARED_STORE_S3);
}
