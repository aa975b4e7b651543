/** How time grows with what is worked on: at 1, 10 and 100 times as much. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Report, type Section, versionsOfPeers } from "#test/bench/report.ts";
import { amountOf, type Growing, growing } from "./growing.ts";
import { type Installed, type Server, startServers } from "./servers.ts";
import { cpuSeconds } from "./usage.ts";
import type { Scale } from "./works.ts";

/** Of the largest. */
const steps = [0.01, 0.1, 1] as const;
/** js-ipfs takes minutes for more entries. */
const MOST_OF_JS = 1000;

interface Figure {
  readonly amount: number;
  /** Seconds of one call. */
  readonly seconds: number;
  readonly cpu: number;
}

/** Makes one table; `isChosen` leaves some out, by names that begin with `growth: `. */
export async function benchGrowth(
  program: Installed,
  scale: Scale,
  isChosen: (work: { readonly name: string }) => boolean,
  report: Report,
): Promise<void> {
  const works = growing.filter(({ name }) => isChosen({ name: `growth: ${name}` }));
  if (works.length === 0) return;
  const times = steps.map((step) => step / steps[0]).join(", ");
  const how = `at ${times} times as much`;
  const section = report.section("node, growth", {
    how,
    beside: versionsOfPeers(),
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

async function grow(section: Section, server: Server, work: Growing, largest: number): Promise<void> {
  const figures: Figure[] = [];
  for (const step of steps) {
    const amount = largest * step;
    if (server.name === "js-ipfs" && work.unit !== "MiB" && amount > MOST_OF_JS) break;
    figures.push(await measure(server, work, amount, work.repeats ? Math.round(1 / step) : 1));
  }
  const amounts = figures.map(({ amount }) => Number(amount.toPrecision(3)).toLocaleString("en")).join(", ");
  const columns = (of: (figure: Figure) => number) => {
    const shown = figures.map((figure) => Number((of(figure) * 1000).toPrecision(3)).toLocaleString("en")).join(", ");
    return [shown, slope(figures.map((figure) => [Math.log(figure.amount), Math.log(of(figure))])).toFixed(2)];
  };
  const cells = [...columns(({ cpu }) => cpu), ...columns(({ seconds }) => seconds)];
  section.row([work.name, server.name, `${amounts} ${work.unit}`, ...cells]);
}

/** Of the line that comes closest to the points. */
function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length;
  const x = mean(0);
  const y = mean(1);
  const sum = (of: (dx: number, dy: number) => number) =>
    points.reduce((sum, point) => sum + of(point[0] - x, point[1] - y), 0);
  return sum((dx, dy) => dx * dy) / sum((dx) => dx * dx);
}

/** The calls for few entries are made so often that they last as long as those for many. */
async function measure({ url, pid }: Server, work: Growing, amount: number, calls: number): Promise<Figure> {
  const run = await work.prepare(url, amount, calls);
  const cpu = cpuSeconds(pid);
  const began = performance.now();
  for (let call = 0; call < calls; call += 1) await run(call);
  const seconds = (performance.now() - began) / 1000;
  return { amount, seconds: seconds / calls, cpu: (cpuSeconds(pid) - cpu) / calls };
}
