import { type ChildProcess, fork } from "node:child_process";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";

/** A server under measurement: a process of its own that tells its port and its CPU time. */
export class Subject {
  readonly name: string;
  readonly path: string;
  readonly #child: ChildProcess;
  port = 0;

  private constructor(name: string, path: string, child: ChildProcess) {
    this.name = name;
    this.path = path;
    this.#child = child;
  }

  /** Starts a file of `servers/`; its standard output (logs) is thrown away by the system. */
  static async start(name: string, file: string, path: string, env: Record<string, string> = {}): Promise<Subject> {
    const child = fork(fileURLToPath(new URL(`servers/${file}`, import.meta.url)), [], {
      execArgv: ["--conditions=source"],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: { ...process.env, NODE_ENV: "production", ...env },
    });
    const subject = new Subject(name, path, child);
    subject.port = await subject.#answer<number>();
    return subject;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** User and system CPU time so far, microseconds. */
  cpu(): Promise<number> {
    return this.ask("cpu");
  }

  /** As `cpu`, once the server has done what the message asks for. */
  ask(message: string): Promise<number> {
    this.#child.send(message);
    return this.#answer<number>();
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.kill();
    });
  }

  #answer<T>(): Promise<T> {
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

const LAST_CHUNK = Buffer.from("0\r\n\r\n");

/**
 * Sends `count` requests over `connections` kept-alive sockets, one at a time on each, and checks each answer's
 * status. The client does as little as it can, so that the server is what is measured. Returns seconds.
 */
export async function load(
  port: number,
  path: string,
  count: number,
  connections = 32,
  method: "GET" | "POST" = "GET",
): Promise<number> {
  const length = method === "POST" ? "Content-Length: 0\r\n" : "";
  const request = Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: localhost:${port}\r\nUser-Agent: bench\r\nAccept: */*\r\n${length}\r\n`,
  );
  let left = count;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: Math.min(connections, count) }, () => {
      return new Promise<void>((resolve, reject) => {
        const socket = connect({ port, host: "127.0.0.1", noDelay: true });
        let pending: Buffer | undefined;
        const next = () => {
          if (left <= 0) {
            socket.destroy();
            resolve();
            return;
          }
          left -= 1;
          socket.write(request);
        };
        socket.on("connect", next).on("error", reject);
        socket.on("data", (chunk: Buffer) => {
          pending = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
          const end = pending.indexOf("\r\n\r\n");
          if (end < 0) return;
          const head = pending.toString("latin1", 0, end);
          const length = Number(/^content-length: (\d+)/im.exec(head)?.[1]);
          const isWhole = Number.isNaN(length)
            ? pending.subarray(-5).equals(LAST_CHUNK)
            : pending.length >= end + 4 + length;
          if (!isWhole) return;
          if (!head.startsWith("HTTP/1.1 200")) reject(new Error(`${path} answered ${head.split("\r\n")[0]}`));
          pending = undefined;
          next();
        });
      });
    }),
  );
  return (performance.now() - began) / 1000;
}

/** The value that this share of all does not exceed. */
export function quickest(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
