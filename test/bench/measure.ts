import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Connections, requestBytes } from "./host/http1.ts";
import type { Listening } from "./servers/report.ts";

/**
 * A server under measurement: a process of its own that reports its port, its CPU time and its
 * memory.
 */
export class Subject {
  readonly name: string;
  readonly path: string;
  readonly #child: ChildProcess;
  began: Listening = { port: 0, milliseconds: Number.NaN, cpu: Number.NaN };

  private constructor(name: string, path: string, child: ChildProcess) {
    this.name = name;
    this.path = path;
    this.#child = child;
  }

  /** Starts a file of `servers/`. Its standard output (logs) goes to /dev/null. */
  static async start(name: string, file: string, path: string, env: Record<string, string> = {}): Promise<Subject> {
    const child = fork(fileURLToPath(new URL(`servers/${file}`, import.meta.url)), [], {
      execArgv: ["--conditions=source", "--expose-gc"],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: { ...process.env, NODE_ENV: "production", ...env },
    });
    const subject = new Subject(name, path, child);
    subject.began = await subject.#reported<Listening>();
    return subject;
  }

  get port(): number {
    return this.began.port;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Resolves to the user and system CPU time so far in microseconds. */
  cpu(): Promise<number> {
    return this.ask("cpu");
  }

  /** Sends a message and resolves to the CPU time once the server has done what it says. */
  ask(message: string): Promise<number> {
    this.#child.send(message);
    return this.#reported<number>();
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.kill();
    });
  }

  #reported<T>(): Promise<T> {
    return new Promise((resolve, reject) => {
      const exit = (code: number | null) => reject(new Error(`${this.name} ended with code ${code}`));
      this.#child.once("exit", exit);
      this.#child.once("message", (message) => {
        this.#child.removeListener("exit", exit);
        resolve(message as T);
      });
    });
  }
}

/**
 * Sends `count` requests over `connections` new sockets, one at a time on each, and checks the
 * status of each response. Resolves to the seconds that this took.
 */
export async function load(
  port: number,
  path: string,
  count: number,
  connections = 32,
  method: "GET" | "POST" = "GET",
): Promise<number> {
  const began = performance.now();
  const opened = await Connections.open({ port }, Math.min(connections, count));
  try {
    await opened.ask([requestBytes({ path, method }, port)], count);
  } finally {
    opened.close();
  }
  return (performance.now() - began) / 1000;
}

/** Returns the value that this share of all values does not exceed. */
export function quickest(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = Number.NaN, high = Number.NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}
