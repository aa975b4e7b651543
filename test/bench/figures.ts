import { load, quickest, Subject } from "./measure.ts";
import type { Report } from "./report.ts";

/** Requests after modules came or went that are not measured: what is new is compiled first. */
const WARM_UP = 6000;
/** Measured pieces in which figures are on, or off, one after another. */
const SLICES = 12;

/**
 * What figures cost a request: those for Prometheus and those of the Admin API. They come and go
 * with their modules in one process, since processes of one kind differ by more than that. Nobody
 * is subscribed to traces; requests have their ids. Short pieces are measured, and the quickest
 * tenth of each kind is compared: what else the machine does only ever adds.
 */
export async function benchFigures({ rounds = 16, requests = 800 }, report: Report): Promise<void> {
  const pieces = rounds * SLICES;
  const section = report.section("figures", { how: `${pieces} pieces of ${requests} requests of each kind` });
  const subjects = [
    await Subject.start("log off", "modhost.ts", "/app149/hello", { LOGGER: "off", FIGURES: "off" }),
    await Subject.start("request log on", "modhost.ts", "/app149/hello", { LOGGER: "on", FIGURES: "off" }),
  ];
  const spent = new Map(subjects.map((subject) => [subject, { on: [] as number[], off: [] as number[] }]));
  const measure = async (subject: Subject, figures: "on" | "off") => {
    await subject.ask(`figures ${figures}`);
    await load(subject.port, subject.path, WARM_UP);
    for (let slice = 0; slice < SLICES; slice += 1) {
      const before = await subject.cpu();
      await load(subject.port, subject.path, requests);
      spent.get(subject)?.[figures].push(((await subject.cpu()) - before) / requests);
    }
  };
  try {
    for (const subject of subjects) await load(subject.port, subject.path, 5 * WARM_UP);
    for (let round = 0; round < rounds; round += 1) {
      for (const subject of subjects) {
        // Each of them comes first in every other round, so that a drifting machine touches both
        // alike.
        for (const figures of round % 2 === 0 ? (["off", "on"] as const) : (["on", "off"] as const))
          await measure(subject, figures);
      }
    }
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
  }
  section.head(["", "CPU per request (µs), quickest tenth", "with figures", "x", "x of the quickest quarter"]);
  for (const [{ name }, { on, off }] of spent) {
    const ratio = (share: number) => (quickest(on, share) / quickest(off, share)).toFixed(3);
    const without = quickest(off, 0.1).toFixed(1);
    const withThem = quickest(on, 0.1).toFixed(1);
    section.row([name, without, withThem, ratio(0.1), ratio(0.25)]);
  }
}
