/**
 * The node as a process of its own, as an operator starts it: for tests of crashes, clients and
 * speed.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { endingWithUs } from "./engines/programs.ts";
import { launcher as cloned, wordsOf } from "./launchers.ts";

/**
 * The API without what else a host runs by itself, such as the dashboard: a tenth of the time of a
 * start.
 */
export const apiOnly: NodeJS.ProcessEnv = { MODHOST_MODULES_ENABLED: "http,http_errors,http_api" };

/** A third of the time of a start: where no peer is needed. */
export const apiOffline: NodeJS.ProcessEnv = { ...apiOnly, MODHOST_NODE_OFFLINE: "true" };

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Parameters by name, or in pairs where one has several values. */
export type Query = Readonly<Record<string, string>> | readonly (readonly [name: string, value: string])[];

export interface RpcServerSettings {
  /** Data folder: the repo is made in it. Also the working directory. */
  readonly folder: string;
  /** Further variables of the environment, such as MODHOST_<OPTION>. */
  readonly env?: NodeJS.ProcessEnv;
  readonly nodeFlags?: readonly string[];
  /** A program and its arguments that start it as their only child, such as `inNamespace`. */
  readonly within?: readonly string[];
  /** Of an installed package; default: that of this clone, which runs from source. */
  readonly launcher?: string;
}

/**
 * A started server; whoever starts it stops it. Where the system can do it (Linux), it ends with
 * the process that started it.
 */
export class RpcServer implements AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  readonly pid: number;
  readonly #child: Child;
  readonly #exited: Promise<unknown>;
  readonly #log: string[];

  private constructor(child: Child, pid: number, exited: Promise<unknown>, log: string[], port: number) {
    this.#child = child;
    this.#exited = exited;
    this.#log = log;
    this.url = `http://127.0.0.1:${port}`;
    this.pid = pid;
  }

  static async start({
    folder,
    env,
    nodeFlags = [],
    launcher = cloned,
    within = [],
  }: RpcServerSettings): Promise<RpcServer> {
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    const fixed = {
      MODHOST_HTTP_PORTS: "0",
      MODHOST_HTTPS_PORTS: "",
      MODHOST_ADMIN_PORT: "0",
      MODHOST_DATA_PATH: folder,
      MODHOST_HTTP_LOG: "false",
    };
    const [first = "", ...others] = [...within, process.execPath, ...nodeFlags, ...wordsOf(launcher), "run", "--json"];
    const [program, ...args] = endingWithUs(first, ...others);
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...inherited, ...fixed, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exited = once(child, "exit");
    const log: string[] = [];
    child.stderr.setEncoding("utf8").on("data", (text: string) => log.push(text));
    const lines = createInterface(child.stdout);
    const line = await Promise.race([
      once(lines, "line").then(([first]) => String(first)),
      exited.then(() => undefined),
    ]);
    lines.close();
    child.stdout.resume();
    const port = line === undefined ? undefined : httpPort(line);
    if (port === undefined) {
      child.kill("SIGKILL");
      throw new Error(`The server did not start:\n${line ?? ""}\n${log.join("")}`);
    }
    const pid = within.length === 0 ? (child.pid as number) : await onlyChild(child.pid as number);
    return new RpcServer(child, pid, exited, log, port);
  }

  /** A call; parts are files of a multipart body, by name. */
  async call(command: string, query: Query = {}, parts?: Readonly<Record<string, Uint8Array>>) {
    const body = parts && new FormData();
    for (const [name, bytes] of Object.entries(parts ?? {})) {
      body?.append("file", new Blob([bytes as Uint8Array<ArrayBuffer>]), encodeURIComponent(name));
    }
    return fetch(`${this.url}/api/v0/${command}?${new URLSearchParams(query as Record<string, string>)}`, {
      method: "POST",
      ...(body === undefined ? {} : { body }),
    });
  }

  /** What it has written to its log so far. */
  log(): string {
    return this.#log.join("");
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) process.kill(this.pid, signal);
    await this.#exited;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill("SIGTERM");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

async function onlyChild(pid: number): Promise<number> {
  return Number(await readFile(`/proc/${pid}/task/${pid}/children`, "latin1"));
}

function httpPort(line: string): number | undefined {
  try {
    const { ports } = JSON.parse(line) as { ports: readonly { scheme?: string; port: number }[] };
    return ports.find(({ scheme }) => scheme === "http")?.port;
  } catch {
    return undefined;
  }
}
