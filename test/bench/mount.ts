import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RpcServer } from "#test/support/rpc_server.ts";
import { median } from "./measure.ts";
import { mountFor, type Scale, type Task, tasks, ways } from "./mount/tasks.ts";
import { cpuSeconds, forgetPeak, peakBytes } from "./node/usage.ts";

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
  /** Regular expression: only tasks whose name it matches. */
  readonly only?: string;
}

/**
 * The mounts of a node beside the same done over RPC, in turns, on a fresh node in each round. What is read through a
 * mount is not in the kernel's cache, unless a task says so. CPU time and memory are those of the node and of the
 * process that holds its mounts. Ratios are taken within each round; figures are medians.
 */
export async function benchMount({ rounds = 3, size = 256, only = "" }: MountBenchOptions): Promise<void> {
  const scale: Scale = { size: size * mebibyte };
  const samples = new Map(
    tasks.filter(({ name }) => new RegExp(only).test(name)).map((task) => [task, ways.map((): Sample[] => [])]),
  );
  for (let round = 1; round <= rounds; round += 1) await playRound(samples, scale, round);
  console.log(`${rounds} rounds, large file of ${size} MiB (Node ${process.version})`);
  for (const [task, byWay] of samples) print(task, byWay, scale);
}

async function playRound(samples: ReadonlyMap<Task, Sample[][]>, scale: Scale, seed: number): Promise<void> {
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

function print({ name, unit, amount }: Task, byWay: readonly (readonly Sample[])[], scale: Scale): void {
  const [base = []] = byWay;
  console.log(`\n| ${name} (x ${ways[0]}) | ${unit} | CPU (s) | peak memory (MiB) |`);
  console.log("|---|---|---|---|");
  for (const [at, own] of byWay.entries()) {
    const cell = (digits: number, figure: (sample: Sample) => number) => {
      const ratio = median(own.map((sample, round) => figure(sample) / figure(base[round] as Sample)));
      return `${median(own.map(figure)).toFixed(digits)} (${ratio.toFixed(2)})`;
    };
    const speed = cell(0, ({ seconds }) => amount(scale) / seconds);
    const cpu = cell(2, (sample) => sample.cpu);
    console.log(`| ${ways[at]} | ${speed} | ${cpu} | ${cell(0, ({ peak }) => peak / mebibyte)} |`);
  }
}
