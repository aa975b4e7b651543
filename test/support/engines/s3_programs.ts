/**
 * S3 servers of other projects, for machines that have their programs. An environment variable
 * names each of them.
 */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Signer } from "#node/storage/shared/s3/signing.ts";
import { eventually } from "../eventually.ts";
import { freePort } from "../free_port.ts";
import { endingWithUs } from "./programs.ts";
import type { S3User } from "./s3_signature.ts";

export interface S3Engine extends AsyncDisposable {
  readonly endpoint: string;
  readonly user: S3User;
  /** Id of its process. */
  readonly pid: number;
  /** Kills the server, as a power failure would. */
  kill(): Promise<void>;
  /** Starts the server again after `kill`, with the objects that it has stored. */
  restart(): Promise<void>;
}

export interface S3Program {
  readonly name: string;
  /** The reason why it cannot be started, for `skip`; false if it can. */
  readonly missing: string | false;
  /**
   * Starts the server on a temporary folder, with these buckets. It does not keep the test process
   * alive, and ends with it.
   */
  start(...buckets: readonly string[]): Promise<S3Engine>;
}

interface Kind {
  readonly name: string;
  /** Environment variable with the path of the program. */
  readonly variable: string;
  readonly words: (address: string, folder: string) => readonly string[];
  readonly environment: (user: S3User) => NodeJS.ProcessEnv;
}

const KINDS: readonly Kind[] = [
  {
    name: "versitygw",
    variable: "VERSITYGW",
    words: (address, folder) => ["--quiet", "--keep-alive", "--port", address, "posix", folder],
    environment: ({ accessKeyId, secretAccessKey }) => ({
      ROOT_ACCESS_KEY: accessKeyId,
      ROOT_SECRET_KEY: secretAccessKey,
    }),
  },
  {
    name: "minio",
    variable: "MINIO",
    words: (address, folder) => ["server", "--quiet", "--address", address, folder],
    environment: ({ accessKeyId, secretAccessKey }) => ({
      MINIO_ROOT_USER: accessKeyId,
      MINIO_ROOT_PASSWORD: secretAccessKey,
      MINIO_BROWSER: "off",
      MINIO_UPDATE: "off",
    }),
  },
];

export const s3Programs: readonly S3Program[] = KINDS.map((kind) => {
  const program = process.env[kind.variable];
  return {
    name: kind.name,
    missing: program === undefined ? `${kind.variable} does not name the program ${kind.name}` : false,
    start: (...buckets) => start(kind, program ?? "", buckets),
  };
});

const REGION = "us-east-1";

async function start(kind: Kind, program: string, buckets: readonly string[]): Promise<S3Engine> {
  const folder = await mkdtemp(join(tmpdir(), `modhost-${kind.name}-`));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  await mkdir(join(folder, "objects"));
  const address = `127.0.0.1:${await freePort()}`;
  const user = { accessKeyId: "test", secretAccessKey: "test-secret" };
  const run = async () => {
    const env = { ...process.env, HOME: folder, ...kind.environment(user) };
    const [command, ...words] = endingWithUs(program, ...kind.words(address, join(folder, "objects")));
    const started = spawn(command, words, { env, stdio: "ignore" });
    started.unref();
    const failed = once(started, "error").then(([error]) => Promise.reject(error as Error));
    const serves = eventually(`${kind.name} has made its buckets`, async () => {
      if (started.exitCode !== null) throw new Error(`${kind.name} ended with status ${started.exitCode}`);
      const made = await Promise.all(buckets.map((bucket) => makeBucket(address, bucket, user)));
      return made.every(Boolean);
    });
    await Promise.race([failed, serves]);
    return started;
  };
  let child = await run();
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  return {
    endpoint: `http://${address}`,
    user,
    get pid() {
      return child.pid as number;
    },
    kill,
    async restart() {
      child = await run();
    },
    async [Symbol.asyncDispose]() {
      await kill();
      remove();
      process.off("exit", remove);
    },
  };
}

/** Resolves to false while the server is not ready. */
async function makeBucket(address: string, bucket: string, user: S3User): Promise<boolean> {
  const sha256 = createHash("sha256").digest("hex");
  const request = { method: "PUT", host: address, path: `/${bucket}`, query: {}, headers: {}, sha256 };
  const { headers } = new Signer(REGION).sign(request, user);
  // `fetch` adds this field itself.
  const { host: _, ...others } = headers;
  try {
    const { ok, status } = await fetch(`http://${address}/${bucket}`, { method: "PUT", headers: others });
    // 409: the bucket exists already, after a restart.
    return ok || status === 409;
  } catch {
    return false;
  }
}
