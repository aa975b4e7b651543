/** A PostgreSQL server for the tests of a file, with its data in a temporary folder. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** It refuses to run as root. */
const nobody = 65534;
const isRoot = process.getuid?.() === 0;
const user = isRoot ? { uid: nobody, gid: nobody } : {};

async function binaries(): Promise<string | undefined> {
  const home = "/usr/lib/postgresql";
  const versions = await readdir(home).catch(() => []);
  const [newest] = versions.map(Number).sort((a, b) => b - a);
  return newest === undefined ? undefined : join(home, String(newest), "bin");
}

export class Postgres {
  readonly port: number;
  readonly #bin: string;
  readonly #folder: string;
  #server: ReturnType<typeof spawn> | undefined;

  private constructor(bin: string, folder: string, port: number) {
    this.#bin = bin;
    this.#folder = folder;
    this.port = port;
  }

  /** Undefined where there is none. */
  static async start(): Promise<Postgres | undefined> {
    const bin = await binaries();
    if (bin === undefined) return undefined;
    const folder = await mkdtemp(join(tmpdir(), "modhost-postgres-"));
    if (isRoot) await chown(folder, nobody, nobody);
    await chmod(folder, 0o700);
    await run(
      join(bin, "initdb"),
      ["-D", join(folder, "data"), "-U", "test", "-A", "trust", "-N", "--no-instructions"],
      {
        ...user,
        cwd: folder,
      },
    );
    const postgres = new Postgres(bin, folder, await freePort());
    await postgres.begin();
    return postgres;
  }

  url(schema: string): string {
    return `postgres://test@127.0.0.1:${this.port}/postgres?schema=${schema}`;
  }

  async begin(): Promise<void> {
    const flags = ["fsync=off", "max_connections=60", "shared_buffers=16MB", `unix_socket_directories=${this.#folder}`];
    const server = spawn(
      join(this.#bin, "postgres"),
      ["-D", "data", "-h", "127.0.0.1", "-p", String(this.port), ...flags.flatMap((flag) => ["-c", flag])],
      { ...user, cwd: this.#folder, stdio: ["ignore", "ignore", "pipe"] },
    );
    this.#server = server;
    const ready = Promise.withResolvers<void>();
    let log = "";
    server.stderr?.on("data", (text) => {
      log += text;
      if (log.includes("ready to accept connections")) ready.resolve();
    });
    server.once("exit", () => ready.reject(new Error(`PostgreSQL has not started: ${log}`)));
    await ready.promise;
  }

  /** `SIGINT` ends connections first, `SIGQUIT` is a crash. */
  async end(signal: "SIGINT" | "SIGQUIT" = "SIGINT"): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.kill(signal);
    if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
  }

  async remove(): Promise<void> {
    await this.end("SIGQUIT");
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
