import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { benchGrowth } from "./node/growth.ts";
import { benchLoop } from "./node/loop.ts";
import { type Installed, installed, type NodeServer, startServers } from "./node/servers.ts";
import { benchStart } from "./node/start.ts";
import { cpuSeconds, fileBytes, forgetPeak, peakBytes } from "./node/usage.ts";
import { large, lists, long, type NodeScale, type NodeWork, small, warmUp } from "./node/works.ts";
import { type BenchReport, Comparison, type ReportSection, spread, versionsOfPeers } from "./report.ts";

const mebibyte = 2 ** 20;
/**
 * Turns of each server before a work of many calls is measured: until then programs compile the
 * code that they run, and grow.
 */
const WARM_TURNS = 3;
/** Bytes of the large file during the warm-up. */
const WARM_BYTES = 16 * mebibyte;

interface Sample {
  readonly seconds: number;
  readonly cpu: number;
  /** Peak memory, and the part of it that is not backed by files. */
  readonly peak: number;
  readonly own: number;
}

const noSample: Sample = { seconds: Number.NaN, cpu: Number.NaN, peak: Number.NaN, own: Number.NaN };

/** A sample for each round, by work and server. */
type Samples = Map<NodeWork, Map<string, Sample[]>>;

export interface NodeBenchOptions {
  readonly rounds?: number;
  /** MiB of the large file. */
  readonly size?: number;
  /**
   * Whether to use a large file of 1 GiB and ten times as many entries, and to measure the memory
   * of idle servers after an hour.
   */
  readonly full?: boolean;
  /** Regular expression: only works with a matching name. */
  readonly only?: string;
}

/**
 * Compares the node over HTTP with other nodes and with the limit of the machine, in turns, on new
 * stores in each round. Then it measures how lists and collections grow. Ratios are taken within
 * each round; the tables show medians.
 */
export async function benchNode(options: NodeBenchOptions, report: BenchReport): Promise<void> {
  const { rounds = 3, size = 256, full = false, only = "" } = options;
  const scale: NodeScale = { size: (full ? 1024 : size) * mebibyte, entries: full ? 100_000 : 10_000 };
  const chosen = ({ name }: { readonly name: string }) => new RegExp(only).test(name);
  await using program = await installed();
  const isWhole = only === "";
  const samples: Samples = new Map(
    [...large, ...small, ...lists, ...(full ? long : [])].filter(chosen).map((work) => [work, new Map()]),
  );
  if (samples.size > 0) {
    const how = `${rounds} rounds, large file of ${scale.size / mebibyte} MiB`;
    const section = report.section(full ? "node, full" : "node", { how, versions: versionsOfPeers(), isWhole });
    for (let round = 1; round <= rounds; round += 1) await playRound(program, samples, scale, round);
    print(section, samples, scale);
    if (samples.size > 1) printPeaks(section, samples);
  }
  if (chosen({ name: "start" })) await benchStart(program, { full, report });
  await benchLoop(program, scale, chosen, report);
  await benchGrowth(program, scale, chosen, report);
}

async function playRound(program: Installed, samples: Samples, scale: NodeScale, round: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  let servers: readonly NodeServer[] = [];
  try {
    servers = await startServers(program, folder);
    for (const { url } of servers) await warmUp({ ...scale, url, seed: round });
    for (const [work, byServer] of samples) {
      for (const server of servers) {
        if (server.isLimit && work.isList) continue;
        const sample = await measure(server, work, scale, round).catch((error: Error) => {
          console.error(`${server.name}, ${work.name}: ${error.message}`);
        });
        const own = byServer.get(server.name) ?? [];
        own.push(sample ?? noSample);
        byServer.set(server.name, own);
      }
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure({ url, pid }: NodeServer, work: NodeWork, scale: NodeScale, seed: number): Promise<Sample> {
  for (let turn = 1; turn <= WARM_TURNS && !large.includes(work) && !long.includes(work); turn += 1) {
    const warm = await work.prepare({ ...scale, size: WARM_BYTES, url, seed: seed + turn * 1000 });
    await warm();
  }
  const run = await work.prepare({ ...scale, url, seed });
  forgetPeak(pid);
  const cpu = cpuSeconds(pid);
  const began = performance.now();
  await run();
  const seconds = (performance.now() - began) / 1000;
  const peak = peakBytes(pid);
  return { seconds, cpu: cpuSeconds(pid) - cpu, peak, own: peak - fileBytes(pid) };
}

/** CPU time is for a whole large file, and for one of many calls. */
function print(section: ReportSection, samples: Samples, scale: NodeScale): void {
  const table = new Comparison<Sample>(section, [
    { title: "rate", isCompared: true },
    { title: "CPU time", isCompared: true },
    { title: "peak memory (MiB)" },
    { title: "of its own (MiB)" },
  ]);
  for (const [work, byServer] of samples) {
    const amount = work.amount(scale);
    const [unit, digits, count] = large.includes(work) ? ["s", 2, 1] : ["µs each", work.isList ? 1 : 0, amount / 1e6];
    table.add(
      `${work.name} (aim: ${work.aim})`,
      [
        { digits: 0, unit: work.unit, better: "more", of: ({ seconds }) => amount / seconds },
        { digits, unit, of: ({ cpu }) => cpu / count },
        { digits: 0, of: ({ peak }) => peak / mebibyte },
        { digits: 0, of: ({ own }) => own / mebibyte },
      ],
      byServer,
    );
  }
}

/**
 * Prints the peak memory of each server over all works of a round: one process does all of them.
 */
function printPeaks(section: ReportSection, samples: Samples): void {
  const works = [...samples.values()];
  const names = new Set(works.flatMap((byServer) => [...byServer.keys()]));
  section.head(["the most memory over all works", "MiB", "of its own (MiB)"]);
  for (const name of names) {
    const most = (metric: (sample: Sample) => number) => {
      const byWork = works.map((byServer) => (byServer.get(name) ?? []).map(metric));
      const rounds = Array.from({ length: Math.max(...byWork.map(({ length }) => length)) }, (_, round) =>
        Math.max(...byWork.flatMap((own) => own[round] ?? []).filter(Number.isFinite)),
      );
      return spread(
        rounds.map((bytes) => bytes / mebibyte),
        0,
      );
    };
    section.row([name, most(({ peak }) => peak), most(({ own }) => own)]);
  }
}
