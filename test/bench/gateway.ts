import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getAll } from "./gateway/client.ts";
import { type BenchedGateway, type Servers, startServers } from "./gateway/servers.ts";
import { type GatewayWork, type RequestTarget, works } from "./gateway/works.ts";
import { installed } from "./node/servers.ts";
import { cpuSeconds } from "./node/usage.ts";
import { type BenchReport, Comparison, versionsOfPeers } from "./report.ts";

const mebibyte = 2 ** 20;
const ENTRIES = 10_000;
/** Turns of each server within a round. */
const TURNS = 4;
/**
 * Turns before those that are measured. Until then Node compiles the code that it runs, which
 * doubles the cost of small requests.
 */
const WARM_UP = 5;

export interface GatewayBenchOptions {
  readonly rounds?: number;
  /** MiB of the large file. */
  readonly size?: number;
  /** Regular expression: only works with a matching name. */
  readonly only?: string;
}

/** Seconds of one round. */
interface Sample {
  readonly cpu: number;
  readonly wall: number;
}

type Samples = ReadonlyMap<BenchedGateway, readonly Sample[]>;

/**
 * Compares the gateway with Kubo's, if KUBO names its program, and with a plain file server. They
 * take short turns, so that other load on the machine affects all of them. Ratios are taken within
 * each round; the tables show medians.
 */
export async function benchGateway(
  { rounds = 5, size = 60, only = "" }: GatewayBenchOptions,
  report: BenchReport,
): Promise<void> {
  const scale = { size: size * mebibyte, entries: ENTRIES };
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  try {
    await using program = await installed();
    await using servers = await startServers(program.launcher, folder, scale);
    const how = `${rounds} rounds, large file of ${size} MiB`;
    const section = report.section("gateway", { how, versions: versionsOfPeers(), isWhole: only === "" });
    const table = new Comparison<Sample>(section, [
      { title: "CPU time of a request", isCompared: true },
      { title: "rate", isCompared: true },
    ]);
    for (const work of works.filter(({ name }) => new RegExp(only).test(name))) {
      const samples = await play(work, servers, { ...scale, ...servers.content }, rounds);
      const { name, count, unit } = work;
      table.add(
        name,
        [
          { digits: 2, unit: "ms", of: ({ cpu }) => (1000 * cpu) / (count * TURNS) },
          {
            digits: 0,
            unit: unit?.name ?? "requests/s",
            better: "more",
            of: ({ wall }) => ((unit?.of(scale) ?? 1) * count * TURNS) / wall,
          },
        ],
        new Map([...samples].map(([server, own]) => [server.name, own])),
      );
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function play(work: GatewayWork, { all }: Servers, target: RequestTarget, rounds: number): Promise<Samples> {
  const known = all.filter(({ isStatic }) => !isStatic || work.plain !== undefined);
  const samples = new Map<BenchedGateway, Sample[]>(known.map((server) => [server, []]));
  // Unmeasured turns warm up each server.
  for (let at = 0; at < WARM_UP; at += 1) for (const server of known) await turn(work, server, target, at);
  for (let round = 0; round < rounds; round += 1) {
    const sums = new Map(known.map((server) => [server, { cpu: 0, wall: 0 }]));
    for (let at = 0; at < TURNS; at += 1) {
      // Each server is first in some rounds.
      const from = at % known.length;
      for (const server of [...known.slice(from), ...known.slice(0, from)]) {
        const { cpu, wall } = await turn(work, server, target, round * TURNS + at);
        const sum = sums.get(server) as { cpu: number; wall: number };
        sum.cpu += cpu;
        sum.wall += wall;
      }
    }
    for (const [server, sum] of sums) samples.get(server)?.push(sum);
  }
  return samples;
}

async function turn(
  work: GatewayWork,
  { url, pid, isStatic }: BenchedGateway,
  target: RequestTarget,
  at: number,
): Promise<Sample> {
  const { get, plain = get, count, atOnce } = work;
  const ask = isStatic ? plain : get;
  const requests = Array.from({ length: count }, (_, one) => ask(target, at * count + one));
  const before = cpuSeconds(pid);
  const began = performance.now();
  await getAll(url, requests, atOnce);
  return { wall: (performance.now() - began) / 1000, cpu: cpuSeconds(pid) - before };
}
