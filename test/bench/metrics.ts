import { load, quickest, Subject } from "./measure.ts";
import type { BenchReport } from "./report.ts";

/**
 * Requests after a load or unload of modules that are not measured, because Node compiles new code
 * first.
 */
const WARM_UP = 6000;
/** Measured pieces with metrics on, or off, one after another. */
const SLICES = 12;

/**
 * Measures what metrics cost a request: those for Prometheus and those of the Admin API. Their
 * modules are loaded and unloaded in one process, because two processes of one kind would differ by
 * more than the cost. Nobody is subscribed to traces; requests have ids. The pieces are short, and
 * the quickest tenth of each kind is compared: other work of the machine can only make a piece
 * slower.
 */
export async function benchMetrics({ rounds = 16, requests = 800 }, report: BenchReport): Promise<void> {
  const pieces = rounds * SLICES;
  const section = report.section("metrics", { how: `${pieces} pieces of ${requests} requests of each kind` });
  const subjects = [
    await Subject.start("log off", "modhost.ts", "/app149/hello", { LOGGER: "off", METRICS: "off" }),
    await Subject.start("request log on", "modhost.ts", "/app149/hello", { LOGGER: "on", METRICS: "off" }),
  ];
  const spent = new Map(subjects.map((subject) => [subject, { on: [] as number[], off: [] as number[] }]));
  const measure = async (subject: Subject, metrics: "on" | "off") => {
    await subject.ask(`metrics ${metrics}`);
    await load(subject.port, subject.path, WARM_UP);
    for (let slice = 0; slice < SLICES; slice += 1) {
      const before = await subject.cpu();
      await load(subject.port, subject.path, requests);
      spent.get(subject)?.[metrics].push(((await subject.cpu()) - before) / requests);
    }
  };
  try {
    for (const subject of subjects) await load(subject.port, subject.path, 5 * WARM_UP);
    for (let round = 0; round < rounds; round += 1) {
      for (const subject of subjects) {
        // Each kind comes first in every other round, so that a change in the machine's speed
        // affects both.
        for (const metrics of round % 2 === 0 ? (["off", "on"] as const) : (["on", "off"] as const))
          await measure(subject, metrics);
      }
    }
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
  }
  section.head(["", "CPU per request (µs), quickest tenth", "with metrics", "x", "x of the quickest quarter"]);
  for (const [{ name }, { on, off }] of spent) {
    const ratio = (share: number) => (quickest(on, share) / quickest(off, share)).toFixed(3);
    const without = quickest(off, 0.1).toFixed(1);
    const withThem = quickest(on, 0.1).toFixed(1);
    section.row([name, without, withThem, ratio(0.1), ratio(0.25)]);
  }
}
