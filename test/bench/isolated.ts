import { load, quickest, Subject } from "./measure.ts";
import type { BenchReport } from "./report.ts";

const WARM_UP = 6000;

/**
 * Measures what isolation costs a request: the hello route of a plain module and of an isolated one
 * take turns in one process. The quickest tenth of short pieces is compared, because other work of
 * the machine can only make a piece slower.
 */
export async function benchIsolated({ rounds = 40, requests = 600 }, report: BenchReport): Promise<void> {
  const section = report.section("isolated", { how: `${rounds} pieces of ${requests} requests of each kind` });
  const subject = await Subject.start("isolated", "modhost.ts", "", { LOGGER: "off", RUN: "isolated" });
  const modules = [
    { name: "a plain module", path: "/app149/hello", spent: [] as number[] },
    { name: "an isolated module", path: "/apart/hello", spent: [] as number[] },
  ];
  try {
    for (const { path } of modules) await load(subject.port, path, WARM_UP);
    for (let round = 0; round < rounds; round += 1) {
      for (const { path, spent } of round % 2 === 0 ? modules : modules.toReversed()) {
        const before = await subject.cpu();
        await load(subject.port, path, requests);
        spent.push(((await subject.cpu()) - before) / requests);
      }
    }
  } finally {
    await subject.stop();
  }
  section.head(["hello route of", "CPU per request (µs), quickest tenth", "x plain", "x of the quickest quarter"]);
  const [plain] = modules;
  for (const { name, spent } of modules) {
    const ratio = (share: number) => (quickest(spent, share) / quickest(plain?.spent ?? [], share)).toFixed(2);
    section.row([name, quickest(spent, 0.1).toFixed(1), ratio(0.1), ratio(0.25)]);
  }
}
