/**
 * `npm run test:scale -- [--cycles 100] [--hosts 3] [--seed N] [--kills]`: hosts on one store are used at the same time through all
 * of them; each cycle kills one of them with -9 and starts it again, every fourth one takes an engine away instead, and one in the middle
 * has PostgreSQL fail over to a standby. `--kills`: the engines are left alone. What every host answers is held against one
 * history.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { Random } from "../fuzz/random.ts";
import { Engines } from "./disturbances.ts";
import { scaleCycles } from "./scale.ts";

const { values } = parseArgs({
  options: {
    cycles: { type: "string", default: "100" },
    hosts: { type: "string", default: "3" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    kills: { type: "boolean", default: false },
  },
});
const KILLS_PER_DISTURBANCE = 3;

if (noSharedStore !== false) {
  console.log(`skipped: ${noSharedStore}`);
  process.exit(0);
}
const seed = Number(values.seed);
const cycles = Number(values.cycles);
console.log(`seed ${seed}`);
const folder = await mkdtemp(join(tmpdir(), "modhost-scale-"));
const engines = values.kills ? undefined : await Engines.start();
try {
  const { settings: store } = engines ?? (await sharedStore());
  const random = new Random(seed + 1);
  const disturb = (cycle: number) => {
    if (engines === undefined || cycle % (KILLS_PER_DISTURBANCE + 1) !== 0) return undefined;
    return cycle === 4 * Math.ceil(cycles / 8) ? engines.failover : engines.any(random);
  };
  const options = { folder, store, seed, cycles, hosts: Number(values.hosts), disturb, report: console.log };
  const { acknowledged, refused, kills, orphans, counts, wrong } = await scaleCycles(options);
  console.log(
    `${kills} kills, ${acknowledged} changes answered with success, ${refused} calls refused with 503 while an engine was away`,
  );
  console.log(`${orphans} objects that nothing lists were left behind, and swept`);
  for (const [command, count] of Object.entries(counts).sort()) console.log(`  ${command}: ${count}`);
  for (const line of wrong) console.log(`wrong: ${line}`);
  console.log(`seed ${seed}: ${wrong.length === 0 ? "1 passed, 0 failed" : "0 passed, 1 failed"}`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
} finally {
  await engines?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
}
