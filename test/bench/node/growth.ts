/** Measures how time grows with the amount of work: 1, 10 and 100 times as much. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BenchReport, type ReportSection, versionsOfPeers } from "#test/bench/report.ts";
import { amountOf, type Growing, growing } from "./growing.ts";
import { type Installed, type NodeServer, startServers } from "./servers.ts";
import { cpuSeconds } from "./usage.ts";
import type { NodeScale } from "./works.ts";

/** Shares of the largest amount. */
const steps = [0.01, 0.1, 1] as const;
/** js-ipfs takes minutes for more entries. */
const MOST_OF_JS = 1000;

interface Measurement {
  readonly amount: number;
  /** Seconds of one call. */
  readonly seconds: number;
  readonly cpu: number;
}

/** Makes one table. `isChosen` may leave out works, by names that begin with `growth: `. */
export async function benchGrowth(
  program: Installed,
  scale: NodeScale,
  isChosen: (work: { readonly name: string }) => boolean,
  report: BenchReport,
): Promise<void> {
  const works = growing.filter(({ name }) => isChosen({ name: `growth: ${name}` }));
  if (works.length === 0) return;
  const times = steps.map((step) => step / steps[0]).join(", ");
  const how = `at ${times} times as much`;
  const section = report.section("node, growth", {
    how,
    versions: versionsOfPeers(),
    isWhole: works.length === growing.length,
  });
  section.head(["", "", "of each", "CPU time (ms)", "exponent", "time (ms)", "exponent"]);
  for (const work of works) {
    const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
    const servers = await startServers(program, folder);
    try {
      for (const server of servers) if (!server.isLimit) await grow(section, server, work, amountOf(work, scale));
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
      await rm(folder, { recursive: true, force: true });
    }
  }
}

async function grow(section: ReportSection, server: NodeServer, work: Growing, largest: number): Promise<void> {
  const measured: Measurement[] = [];
  for (const step of steps) {
    const amount = largest * step;
    if (server.name === "js-ipfs" && work.unit !== "MiB" && amount > MOST_OF_JS) break;
    measured.push(await measure(server, work, amount, work.repeats ? Math.round(1 / step) : 1));
  }
  const amounts = measured.map(({ amount }) => Number(amount.toPrecision(3)).toLocaleString("en")).join(", ");
  const columns = (of: (measurement: Measurement) => number) => {
    const shown = measured
      .map((measurement) => Number((of(measurement) * 1000).toPrecision(3)).toLocaleString("en"))
      .join(", ");
    return [
      shown,
      slope(measured.map((measurement) => [Math.log(measurement.amount), Math.log(of(measurement))])).toFixed(2),
    ];
  };
  const cells = [...columns(({ cpu }) => cpu), ...columns(({ seconds }) => seconds)];
  section.row([work.name, server.name, `${amounts} ${work.unit}`, ...cells]);
}

/** Returns the slope of the line that is closest to the points. */
function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length;
  const x = mean(0);
  const y = mean(1);
  const sum = (of: (dx: number, dy: number) => number) =>
    points.reduce((sum, point) => sum + of(point[0] - x, point[1] - y), 0);
  return sum((dx, dy) => dx * dy) / sum((dx) => dx * dx);
}

/** Calls for few entries are repeated until they last as long as those for many. */
async function measure({ url, pid }: NodeServer, work: Growing, amount: number, calls: number): Promise<Measurement> {
  const run = await work.prepare(url, amount, calls);
  const cpu = cpuSeconds(pid);
  const began = performance.now();
  for (let call = 0; call < calls; call += 1) await run(call);
  const seconds = (performance.now() - began) / 1000;
  return { amount, seconds: seconds / calls, cpu: (cpuSeconds(pid) - cpu) / calls };
}
