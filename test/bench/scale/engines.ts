/**
 * Starts the engines that the hosts share, in processes of their own: so their CPU time is measured
 * apart from that of the hosts.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Subject } from "#test/bench/measure.ts";
import { Postgres } from "#test/support/engines/postgres.ts";
import { s3Programs } from "#test/support/engines/s3_programs.ts";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import type { BareStore } from "./bare_s3.ts";

const BUCKET = "bench";
const USER = { accessKeyId: "test", secretAccessKey: "test-secret" };

export interface StoreEngines extends AsyncDisposable {
  /** Ids of their processes. */
  readonly pids: { readonly s3: number; readonly sql: number };
  readonly settings: StoreSettings;
  readonly bare: BareStore;
}

const program = s3Programs.find(({ missing }) => missing === false);

/** The S3 server: a program that the environment names, such as VERSITYGW, or that of the tests. */
export const s3Name: string = program?.name ?? "the S3 server of the tests";

/** Starts the engines with an empty store. Committed data is flushed to the disk. */
export async function startEngines(): Promise<StoreEngines> {
  await using started = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-engines-"));
  started.defer(() => rm(folder, { recursive: true, force: true }));
  const s3 = started.use(await (program?.start(BUCKET) ?? ownServer()));
  const sql = started.use(await Postgres.start({ durable: true }));
  const credentials = join(folder, "credentials");
  const keys = { AccessKeyId: USER.accessKeyId, SecretAccessKey: USER.secretAccessKey };
  await writeFile(credentials, JSON.stringify(keys), { mode: 0o600 });
  const { endpoint } = s3;
  const settings = { s3: `s3://${BUCKET}/store`, endpoint, region: "us-east-1", credentials, sql: sql.url() };
  const engines = { pids: { s3: s3.pid, sql: sql.pid }, settings, bare: { endpoint, bucket: BUCKET, user: USER } };
  const ending = started.move();
  return { ...engines, [Symbol.asyncDispose]: () => ending.disposeAsync() };
}

async function ownServer() {
  const subject = await Subject.start("S3", "s3.ts", "/", { BENCH_BUCKET: BUCKET });
  return {
    pid: subject.pid,
    endpoint: `http://127.0.0.1:${subject.port}`,
    [Symbol.asyncDispose]: () => subject.stop(),
  };
}
