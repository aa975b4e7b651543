/** A real S3 server, where its program is at hand: `VERSITYGW=/path/to/versitygw` (`go install github.com/versity/versitygw/cmd/versitygw@v1.8.0`). */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../eventually.ts";
import { freePort } from "../free_port.ts";
import { accepts, endingWithUs } from "./programs.ts";
import type { S3User } from "./s3_signature.ts";

const program = process.env.VERSITYGW;

/** Why it cannot be started, to be given as `skip`; false where it can. */
export const noVersitygw: string | false =
  program === undefined ? "VERSITYGW does not name the program versitygw" : false;

export interface S3Engine extends AsyncDisposable {
  readonly endpoint: string;
  readonly user: S3User;
  /** Ends it as a loss of power would. */
  kill(): Promise<void>;
  /** After `kill`, with what it has stored. */
  restart(): Promise<void>;
}

/** Over a temporary folder, with these buckets. */
export async function startVersitygw(...buckets: readonly string[]): Promise<S3Engine> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-versitygw-"));
  for (const bucket of buckets) await mkdir(join(folder, "objects", bucket), { recursive: true });
  const port = await freePort();
  const user = { accessKeyId: "test", secretAccessKey: "test-secret" };
  const run = async () => {
    const options = ["--quiet", "--keep-alive", "--port", `127.0.0.1:${port}`, "posix", join(folder, "objects")];
    const env = { ...process.env, ROOT_ACCESS_KEY: user.accessKeyId, ROOT_SECRET_KEY: user.secretAccessKey };
    const [command, ...words] = endingWithUs(program ?? "", ...options);
    const started = spawn(command, words, { env, stdio: "ignore" });
    await eventually("versitygw listens", () => {
      if (started.exitCode !== null) throw new Error(`versitygw ended with status ${started.exitCode}`);
      return accepts(port);
    });
    return started;
  };
  let child = await run();
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    user,
    kill,
    async restart() {
      child = await run();
    },
    async [Symbol.asyncDispose]() {
      await kill();
      await rm(folder, { recursive: true });
    },
  };
}
