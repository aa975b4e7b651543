import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { launcher } from "#test/support/launchers.ts";
import { load, quickest } from "./measure.ts";
import { type BenchReport, spread } from "./report.ts";

/** Bytes of the file, and of the node's content. */
const BYTES = 10 * 1024;
/** Ticks of `/proc` per second. */
const TICKS = 100;

const hello = `export const depends = ["http"];
export default (module) => module.provides("http", { route: {
  "GET /": ({ response }) => { response.headers.content_type = "text/plain; charset=utf-8"; return "hello"; },
} });`;

/**
 * A server with a number of processes, started as a user would. CPU time is that of all of them.
 */
class Server {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly port: number;

  private constructor(name: string, child: ChildProcess, port: number) {
    this.name = name;
    this.#child = child;
    this.port = port;
  }

  static async start(workers: number, folder: string): Promise<Server> {
    const data = join(folder, `data-${workers}`);
    const args = [launcher, "run", "--json", "--workers", String(workers)];
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env: { ...process.env, MODHOST_DATA_PATH: data },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface(child.stdout);
    const [line] = (await once(lines, "line")) as [string];
    const [{ port }] = (JSON.parse(line) as { ports: [{ port: number }] }).ports;
    const server = new Server(workers === 1 ? "one process" : `${workers} processes`, child, port);
    // Waits until all workers run, in addition to the supervisor.
    while (workers > 1 && (await server.#tree()).length < workers + 1)
      await new Promise((done) => setTimeout(done, 50));
    return server;
  }

  /** Resolves to the CPU time so far in seconds. */
  async cpu(): Promise<number> {
    const spent = await Promise.all(
      (await this.#tree()).map(async (pid) => {
        const stat = await readFile(`/proc/${pid}/stat`, "utf8");
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return (Number(fields[11]) + Number(fields[12])) / TICKS;
      }),
    );
    return spent.reduce((sum, each) => sum + each, 0);
  }

  /** Resolves to the ids of its process and of all processes below it. */
  async #tree(): Promise<number[]> {
    const all = [this.#child.pid as number];
    for (const pid of all) {
      const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
      all.push(...children.split(" ").filter(Boolean).map(Number));
    }
    return all;
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await once(this.#child, "exit");
  }
}

/**
 * Compares a server with one process with a server with several: the hello route, a file, and
 * content of the node, which runs in the first process. They take turns. The client is this
 * process, ideally with a processor of its own.
 */
export async function benchWorkers({ rounds = 7, requests = 12_000, size = 2 }, report: BenchReport): Promise<void> {
  if (process.platform !== "linux") throw new Error("This needs Linux: /proc reports CPU time");
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  const config = {
    http_ports: [0],
    admin_port: 0,
    https_ports: [],
    http_interfaces: ["127.0.0.1"],
    log_level: "warn",
    node_offline: true,
    http_files_dir: ".",
    modules_enabled: ["http", "http_errors", "http_files", "http_health", "http_admin", "http_api", "./mod_hello.mjs"],
  };
  const content = Buffer.alloc(BYTES, "modhost ");
  await writeFile(join(folder, "mod_hello.mjs"), hello);
  await writeFile(join(folder, "ten.txt"), content);
  await writeFile(join(folder, "modhost.config.json"), JSON.stringify(config));
  const servers = [await Server.start(1, folder), await Server.start(size, folder)];
  let cid = "";
  for (const { port } of servers) cid = await add(port, content);
  const subjects = [
    { name: "hello", path: "/hello/", method: "GET", share: 1 },
    { name: "file of 10 KiB", path: "/files/ten.txt", method: "GET", share: 0.25 },
    { name: "cat of 10 KiB", path: `/api/v0/cat?arg=${cid}`, method: "POST", share: 0.25 },
  ] as const;
  try {
    const section = report.section("workers", { how: `${rounds} rounds over 32 connections` });
    section.head(["", "CPU per request (µs), one process", `${size}`, "x", "requests/s, one process", `${size}`, "x"]);
    for (const { name, path, method, share } of subjects) {
      const count = Math.round(requests * share);
      const cpu = servers.map(() => [] as number[]);
      const rate = servers.map(() => [] as number[]);
      for (const { port } of servers) await load(port, path, count, 32, method);
      for (let round = 0; round < rounds; round += 1) {
        for (const [at, server] of servers.entries()) {
          const before = await server.cpu();
          const seconds = await load(server.port, path, count, 32, method);
          cpu[at]?.push((((await server.cpu()) - before) / count) * 1e6);
          rate[at]?.push(count / seconds);
        }
      }
      const [one = [], several = []] = rate;
      const ratios = several.map((value, round) => value / (one[round] ?? Number.NaN));
      // Other work of the machine can only make a turn slower.
      const [costOne, cost] = cpu.map((each) => quickest(each, 0.25)) as [number, number];
      const costs = [costOne.toFixed(0), cost.toFixed(0), (cost / costOne).toFixed(2)];
      section.row([name, ...costs, spread(one, 0), spread(several, 0), spread(ratios, 2)]);
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await rm(folder, { recursive: true });
  }
}

/** Resolves to the CID. */
async function add(port: number, content: Buffer): Promise<string> {
  const body = new FormData();
  body.append("file", new Blob([content]));
  const response = await fetch(`http://127.0.0.1:${port}/api/v0/add?quieter=true`, { method: "POST", body });
  return ((await response.json()) as { Hash: string }).Hash;
}
