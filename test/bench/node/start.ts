/**
 * Measures the time from the start of a process to its first response, with an existing repo, and
 * compares it with a minimal server of node:http and with Kubo. Then it measures the memory of the
 * idle processes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type BenchReport, type ReportSection, spread, versionsOfPeers } from "#test/bench/report.ts";
import { RpcServer } from "#test/support/rpc_server.ts";
import { exchange } from "./client.ts";
import { type Installed, initRepo, type Started, startDaemon } from "./servers.ts";
import { cpuSeconds, fileBytes, peakBytes, residentBytes } from "./usage.ts";

type Start = () => Promise<Started>;

interface Measurement {
  readonly milliseconds: number;
  readonly cpu: number;
  /** MiB in all, and the part that is not backed by files. */
  readonly memory: number;
  readonly own: number;
}

const rounds = 9;
/** Garbage of the start has been collected by then. */
const IDLE_SECONDS = 60;
const HOUR_SECONDS = 3600;
const mebibyte = 2 ** 20;

const hello = `
  const server = require("node:http").createServer((_, response) => response.end("hello"));
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));`;

async function startHello(): Promise<Started> {
  const child = spawn(process.execPath, ["--eval", hello], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = await once(child.stdout, "data");
  const stop = async () => {
    child.kill();
    await once(child, "exit");
  };
  return { url: `http://127.0.0.1:${Number(port)}`, pid: child.pid as number, stop };
}

/** Makes two tables. `full` adds the memory of processes with the network after an hour. */
export async function benchStart(
  { launcher }: Installed,
  { full, report }: { readonly full: boolean; readonly report: BenchReport },
): Promise<void> {
  const section = report.section("node, start", { how: `${rounds} rounds`, versions: versionsOfPeers() });
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  const start = (offline: boolean) => (): Promise<Started> =>
    RpcServer.start({ folder, launcher, env: offline ? { MODHOST_NODE_OFFLINE: "true" } : {} });
  const starts: Readonly<Record<string, Start>> = {
    "node:http": startHello,
    "modhost, offline": start(true),
    modhost: start(false),
    ...(await kuboStarts(join(folder, "kubo"))),
  };
  try {
    // Makes the repo.
    await (await start(true)()).stop();
    const measured = Object.keys(starts).map((): Measurement[] => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [at, start] of Object.values(starts).entries()) measured[at]?.push(await measure(start));
    }
    section.head(["start to first response", "ms", "CPU (s)", "memory (MiB)", "of its own (MiB)"]);
    for (const [at, name] of Object.keys(starts).entries()) {
      const cell = (digits: number, of: (measurement: Measurement) => number) =>
        spread(measured[at]?.map(of) ?? [], digits);
      const times = [cell(0, ({ milliseconds }) => milliseconds), cell(2, ({ cpu }) => cpu)];
      section.row([name, ...times, cell(0, ({ memory }) => memory), cell(0, ({ own }) => own)]);
    }
    idleHead(section, `${IDLE_SECONDS} s`);
    for (const [name, start] of Object.entries(starts)) section.row(await idle(name, start, IDLE_SECONDS));
    if (!full) return;
    idleHead(section, "an hour");
    // All start at the same time, because their repos are different.
    const online = Object.entries(starts).filter(([name]) => !name.endsWith("offline"));
    const rows = await Promise.all(online.map(([name, start]) => idle(name, start, HOUR_SECONDS)));
    for (const row of rows) section.row(row);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns nothing if no variable names the binary. */
async function kuboStarts(folder: string): Promise<Readonly<Record<string, Start>>> {
  const { KUBO: binary } = process.env;
  if (binary === undefined) return {};
  await mkdir(folder);
  initRepo(binary, folder);
  return {
    "Kubo, offline": () => startDaemon(binary, folder, "--offline"),
    Kubo: () => startDaemon(binary, folder),
  };
}

function idleHead(section: ReportSection, after: string): void {
  section.head([`idle, ${after} after the first response`, "memory (MiB)", "of its own (MiB)", "CPU (ms a second)"]);
}

/** Makes a row. The CPU time is that of the second half. */
async function idle(name: string, start: Start, seconds: number): Promise<string[]> {
  const server = await start();
  try {
    await exchange(server.url, "/api/v0/version");
    await sleep(seconds * 500);
    const cpu = cpuSeconds(server.pid);
    await sleep(seconds * 500);
    const resident = residentBytes(server.pid);
    const spent = ((cpuSeconds(server.pid) - cpu) * 1000) / (seconds / 2);
    const memory = [resident, resident - fileBytes(server.pid)].map((bytes) => (bytes / mebibyte).toFixed(0));
    return [name, ...memory, spent.toFixed(1)];
  } finally {
    await server.stop();
  }
}

async function measure(start: Start): Promise<Measurement> {
  const began = performance.now();
  const server = await start();
  try {
    await exchange(server.url, "/api/v0/version");
    const milliseconds = performance.now() - began;
    const peak = peakBytes(server.pid);
    const own = (peak - fileBytes(server.pid)) / mebibyte;
    return { milliseconds, cpu: cpuSeconds(server.pid), memory: peak / mebibyte, own };
  } finally {
    await server.stop();
  }
}
