/**
 * `npm run test:scale -- [--cycles 100 | --minutes 10 [--leak]] [--hosts 3] [--seed N] [--kills | --faults]`:
 * uses hosts on one store at the same time through all of them. Each cycle kills one of them with
 * -9 and restarts it; every fourth cycle disturbs an engine instead, and one in the middle lets
 * PostgreSQL fail over to a standby. `--kills`: engines are not disturbed. `--faults`: each cycle
 * disturbs an engine. All responses are checked against one history. `--minutes`: no host is
 * killed, each minute disturbs an engine, and the resources of hosts and store must not grow;
 * memory is judged from eight minutes on. `--leak`: each host leaks 1 MiB per minute, one in its
 * heap, one in buffers and one in native code, and exactly these leaks must be reported.
 */
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { noSharedStore } from "#test/support/engines/shared_store.ts";
import { Random } from "../fuzz/random.ts";
import { churnHosts } from "./churn.ts";
import { DisturbedEngines } from "./disturbances.ts";
import { LEAK_METRICS, type Leak } from "./leaks/plant.ts";
import { scaleCycles } from "./scale.ts";

const { values } = parseArgs({
  options: {
    cycles: { type: "string", default: "100" },
    minutes: { type: "string" },
    leak: { type: "boolean", default: false },
    hosts: { type: "string", default: "3" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    kills: { type: "boolean", default: false },
    faults: { type: "boolean", default: false },
  },
});
/** The last of so many cycles disturbs an engine. */
const CYCLES_PER_FAULT = values.faults ? 1 : 4;
/** A cycle takes seconds. If it takes longer than this, it will never end. */
const MAX_CYCLE_MS = 15 * 60_000;

if (noSharedStore !== false) {
  console.log(`skipped: ${noSharedStore}`);
  process.exit(0);
}
const seed = Number(values.seed);
const cycles = Number(values.cycles);
console.log(`seed ${seed}`);
const folder = await mkdtemp(join(tmpdir(), "modhost-scale-"));
// The hosts end with this process, even if a signal ends it. Then nobody checks them.
for (const [signal, number] of [
  ["SIGINT", 2],
  ["SIGTERM", 15],
  ["SIGHUP", 1],
] as const) {
  process.once(signal, () => {
    // This runs after the hosts have been ended.
    process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
    process.exit(128 + number);
  });
}
const stuck = setTimeout(() => {
  console.log(`seed ${seed}: a cycle did not end within ${MAX_CYCLE_MS / 60_000} minutes; the hosts are in ${folder}`);
  process.exit(1);
}, MAX_CYCLE_MS);
const report = (line: string) => {
  console.log(line);
  stuck.refresh();
};
try {
  const wrong = values.minutes === undefined ? await killed() : await churned(Number(values.minutes));
  for (const line of wrong) console.log(`wrong: ${line}`);
  console.log(`seed ${seed}: ${wrong.length === 0 ? "1 passed, 0 failed" : "0 passed, 1 failed"}`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
} finally {
  clearTimeout(stuck);
  await rm(folder, { recursive: true, force: true });
}

/** Resolves to what was wrong. */
async function killed(): Promise<readonly string[]> {
  await using engines = await DisturbedEngines.start();
  const random = new Random(seed + 1);
  const disturb = (cycle: number) => {
    if (values.kills || cycle % CYCLES_PER_FAULT !== 0) return undefined;
    const middle = CYCLES_PER_FAULT * Math.ceil(cycles / CYCLES_PER_FAULT / 2);
    return cycle === middle ? engines.failover : engines.next(random);
  };
  const options = { folder, store: engines.settings, seed, cycles, hosts: Number(values.hosts), disturb, report };
  const { acknowledged, refused, slowed, slowest, kills, phases, faults, orphans, counts, wrong } =
    await scaleCycles(options);
  const within = Object.entries(phases).map(([phase, times]) => `${times} in ${phase}`);
  console.log(
    `${kills} kills (${within.join(", ")}), ${acknowledged} changes acknowledged, ${refused} calls rejected with 503 while an engine was unavailable`,
  );
  printSlowed(slowed);
  console.log(`the slowest response of the database, including outages, took ${Math.round(slowest)} ms`);
  for (const [fault, times] of Object.entries(faults).sort()) console.log(`  ${fault}: ${times}`);
  console.log(`${orphans} unlisted objects were left behind, and swept`);
  for (const [command, count] of Object.entries(counts).sort()) console.log(`  ${command}: ${count}`);
  return wrong;
}

/** Resolves to what was wrong, and what grew. */
async function churned(minutes: number): Promise<readonly string[]> {
  await using engines = await DisturbedEngines.start();
  const { settings: store } = engines;
  const next = (random: Random) => engines.next(random);
  const hosts = Number(values.hosts);
  const kinds = (Object.keys(LEAK_METRICS) as Leak[]).slice(0, hosts);
  const leaks = Object.fromEntries(values.leak ? kinds.map((leak, at) => [`host${at + 1}`, leak]) : []);
  const { acknowledged, refused, slowed, wrong, grown } = await churnHosts({
    leaks,
    folder,
    store,
    seed,
    minutes,
    hosts,
    next,
    report,
  });
  console.log(
    `${acknowledged} changes acknowledged, ${refused} calls rejected with 503 while an engine was unavailable`,
  );
  printSlowed(slowed);
  if (!values.leak) return [...wrong, ...grown];
  for (const line of grown) console.log(`found: ${line}`);
  const planted = Object.entries(leaks).map(([host, leak]) => `${host}: ${LEAK_METRICS[leak]} `);
  const isReported = (leak: string) => grown.some((line) => line.startsWith(leak));
  return [
    ...wrong,
    ...grown.filter((line) => !planted.some((leak) => line.startsWith(leak))),
    ...planted.filter((leak) => !isReported(leak)).map((leak) => `${leak}leaks, and nothing reported it`),
  ];
}

function printSlowed(slowed: number): void {
  if (slowed > 0)
    console.log(
      `${slowed} of them were rejected while none was: the machine was too busy for the database to respond in time`,
    );
}
