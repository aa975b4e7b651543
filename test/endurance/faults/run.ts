/**
 * `npm run test:faults -- [--requests 500] [--rounds 6]`: measures the response times of a module
 * next to one that throws, rejects, blocks, loops, leaks or exits, isolated and not. Rounds in
 * which the other module does nothing are run in between, so that a change in the machine's speed
 * affects both. Ratios compare all responses of the one kind of round with all of the other. Loops,
 * leaks and exits of a module that is not isolated would end this process, which contains the host,
 * and are left out. `npm run test:churn-modules -- --reloads 1000` measures memory during reloads
 * of isolated modules.
 */
import { parseArgs } from "node:util";
import { type Fault, type FaultReport, faults, misbehave } from "./faults.ts";

const { values } = parseArgs({
  options: { requests: { type: "string", default: "500" }, rounds: { type: "string", default: "6" } },
});
const requests = Number(values.requests);
const rounds = Number(values.rounds);
const fatal: ReadonlySet<Fault> = new Set(["exits", "loops", "leaks"]);
/** Response times may be at most this many times the usual ones. */
const BOUND = 2;
let failures = 0;

for (const isolated of [false, true]) {
  for (const fault of Object.keys(faults) as Fault[]) {
    if (fault === "nothing" || (!isolated && fatal.has(fault))) continue;
    const usual: FaultReport[] = [];
    const wild: FaultReport[] = [];
    for (let round = 0; round < rounds; round += 1) {
      usual.push(await misbehave("nothing", { isolated, requests, every: 20 }));
      wild.push(await misbehave(fault, { isolated, requests, every: 20 }));
    }
    failures += [...usual, ...wild].reduce((sum, { failed }) => sum + failed, 0);
    print(fault, isolated, usual, wild);
  }
}
console.log(failures === 0 ? "the sound module responded to everything" : `${failures} requests failed`);
process.exitCode = failures === 0 ? 0 : 1;

function print(fault: Fault, isolated: boolean, usual: readonly FaultReport[], wild: readonly FaultReport[]): void {
  const base = usual.flatMap(({ times }) => times);
  const all = wild.flatMap(({ times }) => times);
  const responses = wild.reduce((sum, report) => sum + report.responses, 0);
  const form = isolated ? "isolated" : "plain   ";
  console.log(
    `${form} ${fault.padEnd(8)} ${responses} responses, ${all.length - responses} failed, ${ratio(all, base)}`,
  );
  const out = wild.flatMap((report) => report.quarantined ?? []);
  if (!isolated && out.length > 0) {
    const later = wild.flatMap(({ times, quarantined: since }) => times.slice(since?.after ?? times.length));
    const seconds = median(out.map((one) => one.seconds)).toFixed(1);
    console.log(
      `                  quarantined after ${seconds} s (median of ${out.length}); afterwards ${ratio(later, base)}`,
    );
  }
  const statuses = new Map<number, number>();
  for (const report of wild) {
    for (const [status, count] of report.statuses) statuses.set(status, (statuses.get(status) ?? 0) + count);
  }
  console.log(
    `                  its own: ${[...statuses].map(([status, count]) => `${count} x ${status}`).join(", ")}`,
  );
}

function ratio(times: readonly number[], usual: readonly number[]): string {
  const p99 = at(times, 0.99);
  const base = at(usual, 0.99);
  const over = p99 > BOUND * base ? `, over ${BOUND} x` : "";
  const p50 = `p50 ${at(times, 0.5).toFixed(1)} ms, usually ${at(usual, 0.5).toFixed(1)}`;
  return `${p50}, p99 ${p99.toFixed(1)} ms, usually ${base.toFixed(1)} (${(p99 / base).toFixed(2)} x${over})`;
}

function at(times: readonly number[], share: number): number {
  const sorted = times.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function median(values: readonly number[]): number {
  return at(values, 0.5);
}
