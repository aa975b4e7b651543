import { load, median, Subject } from "./measure.ts";

/** What the host is started with, and what each is compared with. Nobody is subscribed to traces; requests have their ids. */
const kinds = {
  bare: { LOGGER: "off", FIGURES: "off" },
  figures: { LOGGER: "off", FIGURES: "on" },
  log: { LOGGER: "on", FIGURES: "off" },
  all: { LOGGER: "on", FIGURES: "on" },
} as const;

type Kind = keyof typeof kinds;

const rows: readonly (readonly [name: string, kind: Kind, base: Kind])[] = [
  ["figures, beside the request log", "all", "log"],
  ["figures, log off", "figures", "bare"],
  ["figures and request log, beside neither", "all", "bare"],
];

/**
 * What the figures cost a request. Processes of one kind differ by more than that: some of each kind are measured in
 * turns, and each ratio is taken between neighbours of one round.
 */
export async function benchFigures({ rounds = 10, requests = 4000 } = {}): Promise<void> {
  const processes = 3;
  const names = Object.keys(kinds) as Kind[];
  const groups: Record<Kind, Subject>[] = [];
  const ratios = new Map(rows.map(([name]) => [name, [] as number[]]));
  const spent: Record<Kind, number[]> = { bare: [], figures: [], log: [], all: [] };
  try {
    for (let index = 0; index < processes; index += 1) {
      const group = {} as Record<Kind, Subject>;
      groups.push(group);
      for (const kind of names) group[kind] = await Subject.start(kind, "modhost.ts", "/app149/hello", kinds[kind]);
      for (const subject of Object.values(group)) await load(subject.port, subject.path, 4 * requests);
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const group of groups) {
        const cpu: Partial<Record<Kind, number>> = {};
        // Forwards and backwards, so that no kind is always the one that comes later.
        for (const kind of round % 2 === 0 ? names : names.toReversed()) {
          const subject = group[kind];
          const before = await subject.cpu();
          await load(subject.port, subject.path, requests);
          cpu[kind] = ((await subject.cpu()) - before) / requests;
          spent[kind].push(cpu[kind]);
        }
        for (const [name, kind, base] of rows) ratios.get(name)?.push((cpu[kind] ?? 0) / (cpu[base] ?? 0));
      }
    }
  } finally {
    await Promise.all(groups.flatMap((group) => Object.values(group)).map((subject) => subject.stop()));
  }
  console.log(`\nFigures, ${processes} processes of each kind, ${rounds} rounds of ${requests} requests in turns\n`);
  console.log("| | CPU per request (µs) | without | x (median, quartiles) |");
  console.log("|---|---|---|---|");
  for (const [name, kind, base] of rows) {
    const sorted = (ratios.get(name) ?? []).toSorted((a, b) => a - b);
    const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(3);
    const [own, without] = [median(spent[kind]).toFixed(1), median(spent[base]).toFixed(1)];
    console.log(`| ${name} | ${own} | ${without} | ${at(0.5)} (${at(0.25)}-${at(0.75)}) |`);
  }
}
