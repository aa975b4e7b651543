/**
 * Runs the node as a process of its own, as an operator would: for tests of crashes, clients and
 * speed.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { endingWithUs } from "./engines/programs.ts";
import { launcher as cloned } from "./launchers.ts";

/** Only the RPC API, without the dashboard and other modules. A start takes a tenth of the time. */
export const apiOnly: NodeJS.ProcessEnv = { MODHOST_MODULES_ENABLED: "http,http_errors,http_api" };

/** Without a network. A start takes a third of the time, for tests that need no peer. */
export const apiOffline: NodeJS.ProcessEnv = { ...apiOnly, MODHOST_NODE_OFFLINE: "true" };

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Parameters by name, or as pairs if one has several values. */
export type Query = Readonly<Record<string, string>> | readonly (readonly [name: string, value: string])[];

export interface RpcServerSettings {
  /** Data folder, which will contain the repo. It is also the working directory. */
  readonly folder: string;
  /** Further environment variables, such as MODHOST_<OPTION>. */
  readonly env?: NodeJS.ProcessEnv;
  readonly nodeFlags?: readonly string[];
  /**
   * A program and its arguments that start the server as their only child, such as `inNamespace`.
   */
  readonly within?: readonly string[];
  /** Launcher of an installed package. Default: the one of this clone. */
  readonly launcher?: string;
}

/**
 * A running server; whoever starts it stops it. On Linux it also ends with the process that started
 * it.
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
    const [first = "", ...others] = [...within, process.execPath, ...nodeFlags, launcher, "run", "--json"];
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

  /** Calls a command. `parts`: files of a multipart body by name. */
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

  /** Returns everything the server has logged so far. */
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
