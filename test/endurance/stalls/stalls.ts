/**
 * Tests that connections with progress are not reset, by suspending clients and a server, and on a
 * busy machine.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { launcher } from "#test/support/launchers.ts";

export interface StallSettings {
  readonly clients: number;
  /** Maximum number of rounds of each client. In a round it adds a folder and reads it. */
  readonly rounds: number;
  /** Seconds after which no client begins a new round. Each plays at least one. */
  readonly lasts: number;
  readonly files: number;
  /** Seconds of the server's timer for heads. */
  readonly timers: number;
  /** Maximum seconds for which a process is suspended. That is longer than those timers. */
  readonly longest: number;
  /** Number of processes that only keep the machine busy. */
  readonly burners: number;
  readonly random: () => number;
  report?(line: string): void;
}

export interface StallOutcome {
  readonly calls: number;
  readonly failures: readonly string[];
  /** Number of suspensions of the server and of clients. */
  readonly stops: number;
}

const program = fileURLToPath(new URL("client.ts", import.meta.url));

export async function stalls(settings: StallSettings): Promise<StallOutcome> {
  const { clients, rounds, lasts, files, timers, longest, burners, random, report = () => undefined } = settings;
  const folder = await mkdtemp(join(tmpdir(), "modhost-stalls-"));
  const children = new Set<ChildProcess>();
  const endAll = () => {
    for (const child of children) child.kill("SIGKILL");
  };
  process.once("exit", endAll);
  const start = (args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    const stdio = ["ignore", "pipe", "inherit"] as const;
    const child = spawn(process.execPath, args, { cwd: folder, env: { ...inherited, ...env }, stdio: [...stdio] });
    children.add(child);
    return child;
  };
  let stops = 0;
  let isOver = false;
  const suspend = async (child: ChildProcess) => {
    stops += 1;
    child.kill("SIGSTOP");
    await wait(1000 * longest * (0.5 + random() / 2));
    child.kill("SIGCONT");
  };
  try {
    const server = start([launcher, "run"], {
      MODHOST_MODULES_ENABLED: "http,http_api",
      MODHOST_HTTP_PORTS: "0",
      MODHOST_HTTPS_PORTS: "",
      MODHOST_NODE_OFFLINE: "true",
      MODHOST_LOG_LEVEL: "error",
      MODHOST_HTTP_HEAD_TIMEOUT: String(timers),
      // An idle connection may be closed even while its client is suspended.
      MODHOST_HTTP_IDLE_TIMEOUT: String(longest * 2),
      // A connection without progress for this long is closed, as it should be.
      MODHOST_HTTP_PROGRESS_TIMEOUT: String(longest * 10),
    });
    const [line] = (await once(createInterface(server.stdout as NodeJS.ReadableStream), "line")) as [string];
    const { port } = JSON.parse(line).ports[0] as { port: number };
    for (let at = 0; at < burners; at += 1) start(["-e", "for (;;);"]);

    const failures: string[] = [];
    let calls = 0;
    const running = Array.from({ length: clients }, () => {
      const numbers = [rounds, files, lasts].map(String);
      const args = ["--conditions=source", program, `http://127.0.0.1:${port}`, ...numbers];
      const child = start(args);
      createInterface(child.stdout as NodeJS.ReadableStream).on("line", (text) => {
        report(text);
        calls += 1;
        if (text.startsWith("failed")) failures.push(text);
      });
      return { child, ended: once(child, "exit") };
    });
    const stopping = (async () => {
      while (!isOver) {
        const at = Math.floor(random() * (clients + 1));
        await suspend(running[at]?.child ?? server);
        await wait(200 + 400 * random());
      }
    })();
    await Promise.all(running.map(({ ended }) => ended));
    isOver = true;
    await stopping;
    return { calls, failures, stops };
  } finally {
    isOver = true;
    endAll();
    process.removeListener("exit", endAll);
    await rm(folder, { recursive: true, force: true });
  }
}
