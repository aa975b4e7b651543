/**
 * PostgreSQL for tests: a cluster in a temporary folder that tests can stop, kill, freeze, copy and
 * promote.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../eventually.ts";
import { freePort } from "../free_port.ts";
import { newCluster } from "./postgres_cluster.ts";
import { findPrograms, type Programs } from "./postgres_programs.ts";
import { endingWithUs } from "./programs.ts";

let found: Programs | undefined;

/** The reason to skip tests of PostgreSQL, for `skip`; false if it is available. */
export const noPostgres: string | false = (() => {
  try {
    found = findPrograms();
    return false;
  } catch (error) {
    return (error as Error).message;
  }
})();

export interface PostgresOptions {
  /** Committed data survives a power failure of this machine. It always survives `kill`. */
  readonly durable?: boolean;
  /** Certificate and key for TLS, as PEM. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** Settings for `postgresql.conf`. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

/** A PostgreSQL server. It ends with the process that started it, and removes its files. */
export class Postgres implements AsyncDisposable {
  readonly port: number;
  readonly #programs: Programs;
  readonly #folder: string;
  #child: ChildProcess | undefined;
  readonly #end = () => {
    if (this.#child?.pid !== undefined) signal(this.#child.pid, "SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  };

  private constructor(programs: Programs, folder: string, port: number) {
    this.#programs = programs;
    this.#folder = folder;
    this.port = port;
    process.once("exit", this.#end);
  }

  static async start({ durable = false, settings = {}, tls }: PostgresOptions = {}): Promise<Postgres> {
    const server = await Postgres.#at(newFolder());
    await newCluster(server.#programs, server.#data);
    const all = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      shared_buffers: "16MB",
      max_connections: 200,
      wal_level: "replica",
      fsync: durable ? "on" : "off",
      logging_collector: "off",
      ...(tls && { ssl: "on" }),
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(join(server.#data, "postgresql.conf"), lines.join(""));
    if (tls !== undefined) server.#addFiles({ "server.crt": tls.certificate, "server.key": tls.key });
    await server.start();
    return server;
  }

  #addFiles(contents: Readonly<Record<string, string>>): void {
    const { uid, gid } = this.#programs.options;
    for (const [name, text] of Object.entries(contents)) {
      const path = join(this.#data, name);
      writeFileSync(path, text, { mode: 0o600 });
      if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
    }
  }

  static async #at(folder: string): Promise<Postgres> {
    if (found === undefined) throw new Error(noPostgres || "PostgreSQL is not available");
    const { uid, gid } = found.options;
    if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
    return new Postgres(found, folder, await freePort());
  }

  url(database = "postgres"): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** Id of the first process, while the server runs. */
  get pid(): number {
    const { pid } = this.#child ?? {};
    if (pid === undefined) throw new Error("PostgreSQL does not run");
    return pid;
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  /** Everything the server has printed since its first start. */
  get log(): string {
    return readFileSync(join(this.#folder, "log"), "utf8");
  }

  /**
   * Starts the server again after `stop` or `kill`, with all committed data. Resolves when it
   * accepts queries.
   */
  async start(): Promise<void> {
    const options = { ...this.#programs.options, cwd: this.#folder, stdio: "ignore", detached: true } as const;
    const log = join(this.#folder, "log");
    const { postgres } = this.#programs;
    const program = [postgres, "-D", this.#data, "-p", String(this.port)];
    const [command, ...words] = endingWithUs("/bin/sh", "-c", `exec "$@" >>"$0" 2>&1`, log, ...program);
    const child = spawn(command, words, options);
    this.#child = child;
    // The server does not keep the test process alive.
    child.unref();
    await eventually("PostgreSQL accepts queries", () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`PostgreSQL has ended: ${this.log}`);
      return this.#state(child.pid) === "ready";
    });
  }

  /** Stops the server in good order: open transactions are aborted. */
  async stop(): Promise<void> {
    await this.#endWith((pid) => process.kill(pid, "SIGINT"));
  }

  /** Kills all processes of the server, as a power failure would. */
  async kill(): Promise<void> {
    await this.#endWith((pid) => signal(pid, "SIGKILL"));
  }

  /** Suspends the server until `thaw`. Connections stay open. */
  freeze(): void {
    if (this.#child?.pid !== undefined) signal(this.#child.pid, "SIGSTOP");
  }

  thaw(): void {
    if (this.#child?.pid !== undefined) signal(this.#child.pid, "SIGCONT");
  }

  /**
   * Starts a standby of this server, which is restarted for that. With `synchronous`, commits wait
   * for the standby.
   */
  async standby({ synchronous = false } = {}): Promise<Postgres> {
    await this.stop();
    const follower = await Postgres.#at(newFolder());
    cpSync(this.#data, follower.#data, { recursive: true, preserveTimestamps: true });
    const source = `host=127.0.0.1 port=${this.port} user=postgres application_name=standby`;
    appendFileSync(join(follower.#data, "postgresql.conf"), `primary_conninfo = '${source}'\n`);
    writeFileSync(join(follower.#data, "standby.signal"), "");
    const { uid, gid } = this.#programs.options;
    if (uid !== undefined) spawnSync("chown", ["-R", `${uid}:${gid}`, follower.#folder]);
    chmodSync(follower.#data, 0o700);
    if (synchronous) {
      const lines = "synchronous_standby_names = 'standby'\nsynchronous_commit = 'remote_apply'\n";
      appendFileSync(join(this.#data, "postgresql.conf"), lines);
    }
    await this.start();
    await follower.start();
    return follower;
  }

  /** Makes a standby a primary. The previous primary must have ended. */
  async promote(): Promise<void> {
    const { pid } = this;
    writeFileSync(join(this.#data, "promote"), "");
    process.kill(pid, "SIGUSR1");
    await eventually("the standby is a primary", () =>
      /database system is ready to accept connections$/m.test(this.log),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.removeListener("exit", this.#end);
    this.thaw();
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #endWith(end: (pid: number) => void): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.ref();
    end(child.pid);
    await ended;
  }

  /**
   * State that the first process has written: the eighth line of its file, once the file is of this
   * process.
   */
  #state(pid: number | undefined): string | undefined {
    try {
      const lines = readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n");
      return lines[0] === String(pid) ? lines[7]?.trim() : undefined;
    } catch {
      return undefined;
    }
  }
}

const newFolder = (): string => mkdtempSync(join(tmpdir(), "modhost-postgres-data-"));

/**
 * Sends a signal to a process and to all its children. Each child leads a process group of its own
 * and may have ended already.
 */
function signal(pid: number, name: NodeJS.Signals): void {
  for (const each of [pid, ...childrenOf(pid)]) {
    try {
      process.kill(-each, name);
    } catch {
      // The process has ended.
    }
  }
}

/** Returns child processes. The list is empty on systems that do not report them. */
function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
