import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RpcServer } from "#test/support/rpc_server.ts";
import { type MountScale, mountFor, type Task, tasks, ways } from "./mount/tasks.ts";
import { cpuSeconds, forgetPeak, peakBytes } from "./node/usage.ts";
import { type BenchReport, Comparison } from "./report.ts";

const mebibyte = 2 ** 20;

interface Sample {
  readonly seconds: number;
  readonly cpu: number;
  readonly peak: number;
}

export interface MountBenchOptions {
  readonly rounds?: number;
  /** MiB of the large file. */
  readonly size?: number;
  /** Regular expression: only tasks with a matching name. */
  readonly only?: string;
}

/**
 * Compares work through the mounts of a node with the same work over RPC, in turns, with a new node
 * in each round. The kernel's cache does not contain the files that are read, unless a task says
 * so. CPU time and memory include the node and the process of its mounts. Ratios are taken within
 * each round; the tables show medians.
 */
export async function benchMount(
  { rounds = 3, size = 256, only = "" }: MountBenchOptions,
  report: BenchReport,
): Promise<void> {
  const scale: MountScale = { size: size * mebibyte };
  const samples = new Map(
    tasks.filter(({ name }) => new RegExp(only).test(name)).map((task) => [task, ways.map((): Sample[] => [])]),
  );
  for (let round = 1; round <= rounds; round += 1) await playRound(samples, scale, round);
  const how = `${rounds} rounds, large file of ${size} MiB`;
  const table = new Comparison<Sample>(report.section("mount", { how, isWhole: only === "" }), [
    { title: "rate", isCompared: true },
    { title: "CPU time", isCompared: true },
    { title: "peak memory (MiB)" },
  ]);
  for (const [{ name, unit, amount }, byWay] of samples) {
    table.add(
      name,
      [
        { digits: 0, unit, better: "more", of: ({ seconds }) => amount(scale) / seconds },
        { digits: 2, unit: "s", of: ({ cpu }) => cpu },
        { digits: 0, of: ({ peak }) => peak / mebibyte },
      ],
      // The mount comes first, and is compared with RPC.
      new Map(byWay.map((own, at) => [ways[at] as string, own] as const).reverse()),
    );
  }
}

async function playRound(samples: ReadonlyMap<Task, Sample[][]>, scale: MountScale, seed: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  try {
    await using server = await RpcServer.start({ folder });
    const mount = await mountFor(server.url, folder);
    for (const [task, byWay] of samples) {
      const runs = await task.prepare({ ...scale, ...mount, seed });
      for (const [at, way] of ways.entries()) byWay[at]?.push(await measure(server.pid, runs[way]));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(pid: number, run: () => Promise<unknown>): Promise<Sample> {
  forgetPeak(pid);
  const cpu = cpuSeconds(pid);
  const began = performance.now();
  await run();
  const seconds = (performance.now() - began) / 1000;
  return { seconds, cpu: cpuSeconds(pid) - cpu, peak: peakBytes(pid) };
}
