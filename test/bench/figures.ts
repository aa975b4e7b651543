import { load, median, Subject } from "./measure.ts";

/**
 * What figures cost a request: those for Prometheus and those of the Admin API. They come and go with their modules in one
 * process, since processes of one kind differ by more than that. Nobody is subscribed to traces; requests have their ids.
 */
export async function benchFigures({ rounds = 40, requests = 2000 } = {}): Promise<void> {
  const subjects = [
    await Subject.start("log off", "modhost.ts", "/app149/hello", { LOGGER: "off", FIGURES: "off" }),
    await Subject.start("request log on", "modhost.ts", "/app149/hello", { LOGGER: "on", FIGURES: "off" }),
  ];
  const spent = new Map(subjects.map((subject) => [subject, { on: [] as number[], off: [] as number[] }]));
  const measure = async (subject: Subject, figures: "on" | "off") => {
    await subject.ask(`figures ${figures}`);
    // What is new is compiled first.
    await load(subject.port, subject.path, requests);
    const before = await subject.cpu();
    await load(subject.port, subject.path, requests);
    spent.get(subject)?.[figures].push(((await subject.cpu()) - before) / requests);
  };
  try {
    for (const subject of subjects) await load(subject.port, subject.path, 8 * requests);
    for (let round = 0; round < rounds; round += 1) {
      for (const subject of subjects) {
        // Each of them comes first in every other round, so that a drifting machine touches both alike.
        for (const figures of round % 2 === 0 ? (["off", "on"] as const) : (["on", "off"] as const))
          await measure(subject, figures);
      }
    }
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
  }
  console.log(`\nFigures, ${rounds} rounds of ${requests} requests with them and without, in turns\n`);
  console.log("| | CPU per request (µs) | with figures | x (median, quartiles) |");
  console.log("|---|---|---|---|");
  for (const [{ name }, { on, off }] of spent) {
    const ratios = on.map((value, round) => value / (off[round] ?? Number.NaN)).sort((a, b) => a - b);
    const at = (share: number) => (ratios[Math.floor(ratios.length * share)] ?? Number.NaN).toFixed(3);
    console.log(
      `| ${name} | ${median(off).toFixed(1)} | ${median(on).toFixed(1)} | ${at(0.5)} (${at(0.25)}-${at(0.75)}) |`,
    );
  }
}
