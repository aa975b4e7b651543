import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median } from "./measure.ts";
import { type Server, startServers } from "./node/servers.ts";
import { cpuSeconds, forgetPeak, peakBytes } from "./node/usage.ts";
import { large, small, type Work, warmUp } from "./node/works.ts";

const mebibyte = 2 ** 20;

interface Sample {
  readonly seconds: number;
  readonly cpu: number;
  readonly peak: number;
}

const noSample: Sample = { seconds: Number.NaN, cpu: Number.NaN, peak: Number.NaN };

/** By work and server, a sample for each round. */
type Samples = Map<Work, Map<string, Sample[]>>;

/**
 * The node over HTTP beside its peers and beside what the machine can do at best, in turns, on fresh stores in each
 * round. `size`: MiB of the large file; `full` makes it 1 GiB. Ratios are taken within each round; figures are medians.
 */
export async function benchNode({ rounds = 3, size = 256, full = false } = {}): Promise<void> {
  const bytes = (full ? 1024 : size) * mebibyte;
  const samples: Samples = new Map([...large, ...small].map((work) => [work, new Map()]));
  for (let round = 1; round <= rounds; round += 1) await playRound(samples, bytes, round);
  console.log(`${rounds} rounds, large file of ${bytes / mebibyte} MiB (Node ${process.version})`);
  for (const work of large) print(work, samples, bytes, (name) => name.startsWith("node:http"));
  for (const work of small) print(work, samples, bytes, (name) => name === "js-ipfs");
}

async function playRound(samples: Samples, size: number, round: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  let servers: readonly Server[] = [];
  try {
    servers = await startServers(folder);
    for (const { url } of servers) await warmUp({ url, size, seed: round });
    for (const [work, byServer] of samples) {
      for (const server of servers) {
        if (server.isLimit && !large.includes(work)) continue;
        const sample = await measure(server, work, size, round).catch((error: Error) => {
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

async function measure({ url, pid }: Server, work: Work, size: number, seed: number): Promise<Sample> {
  const run = await work.prepare({ url, size, seed });
  forgetPeak(pid);
  const cpu = cpuSeconds(pid);
  const began = performance.now();
  await run();
  const seconds = (performance.now() - began) / 1000;
  return { seconds, cpu: cpuSeconds(pid) - cpu, peak: peakBytes(pid) };
}

/** `isBase` names the server to which the others are compared. */
function print(work: Work, samples: Samples, size: number, isBase: (name: string) => boolean): void {
  const byServer = [...(samples.get(work) ?? [])];
  const [baseName = "-", base = []] = byServer.find(([name]) => isBase(name)) ?? [];
  console.log(`\n| ${work.name} (x ${baseName}) | ${work.unit} | CPU (s) | peak memory (MiB) |`);
  console.log("|---|---|---|---|");
  for (const [name, own] of byServer) {
    const cell = (digits: number, figure: (sample: Sample) => number) => {
      const ratio = median(own.map((sample, round) => figure(sample) / figure(base[round] ?? noSample)));
      const shown = median(own.map(figure)).toFixed(digits);
      return Number.isNaN(ratio) ? shown : `${shown} (${ratio.toFixed(2)})`;
    };
    const speed = cell(0, ({ seconds }) => work.amount(size) / seconds);
    const cpu = cell(2, (sample) => sample.cpu);
    console.log(`| ${name} | ${speed} | ${cpu} | ${cell(0, ({ peak }) => peak / mebibyte)} |`);
  }
}
