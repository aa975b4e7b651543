import { load, median, Subject } from "./measure.ts";

/**
 * The hello route through the whole host beside its peers, in turns, so that a drifting machine touches all alike.
 * Figures are medians over the rounds; ratios are taken within each round.
 */
export async function benchHost({ rounds = 7, requests = 15_000 } = {}): Promise<void> {
  const subjects = [
    await Subject.start("koa, bare", "koa.ts", "/"),
    await Subject.start("node:http, bare", "node.ts", "/"),
    await Subject.start("koa + @koa/router, 150 routes", "koa_router.ts", "/app149/hello"),
    await Subject.start("fastify, 150 routes", "fastify.ts", "/app149/hello"),
    await Subject.start("fastify, 150 routes, logger", "fastify.ts", "/app149/hello", { LOGGER: "on" }),
    await Subject.start("modhost, 150 apps, log off", "modhost.ts", "/app149/hello", { LOGGER: "off" }),
    await Subject.start("modhost, an isolated module, log off", "modhost.ts", "/apart/hello", {
      LOGGER: "off",
      ISOLATED: "on",
    }),
    await Subject.start("modhost, 150 apps, all defaults", "modhost.ts", "/app149/hello"),
  ];
  const cpu = new Map(subjects.map((subject) => [subject, [] as number[]]));
  const rate = new Map(subjects.map((subject) => [subject, [] as number[]]));
  try {
    for (const subject of subjects) await load(subject.port, subject.path, requests);
    for (let round = 0; round < rounds; round += 1) {
      for (const subject of subjects) {
        const before = await subject.cpu();
        const seconds = await load(subject.port, subject.path, requests);
        cpu.get(subject)?.push(((await subject.cpu()) - before) / requests);
        rate.get(subject)?.push(requests / seconds);
      }
    }
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
  }
  const [koa] = subjects;
  const base = cpu.get(koa as Subject) ?? [];
  console.log(`Hello route, ${rounds} rounds of ${requests} requests over 32 connections (Node ${process.version})\n`);
  console.log("| server | CPU per request (µs) | x bare Koa (median, range) | requests/s |");
  console.log("|---|---|---|---|");
  for (const subject of subjects) {
    const own = cpu.get(subject) ?? [];
    const ratios = own.map((value, round) => value / (base[round] ?? Number.NaN));
    const range = `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`;
    const perSecond = Math.round(median(rate.get(subject) ?? []));
    console.log(
      `| ${subject.name} | ${median(own).toFixed(1)} | ${median(ratios).toFixed(2)} (${range}) | ${perSecond} |`,
    );
  }
}
