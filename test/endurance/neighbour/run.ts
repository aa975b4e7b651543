/**
 * `npm run test:neighbour -- [--seconds 10] [--only ACT]`: a sandboxed module spins, forks, fills
 * its memory and its disk, and floods its log and its host, and a trusted neighbour is asked 200
 * times a second. Prints how long its responses take, and how long while nothing happens. Exits
 * with 1 if a request fails, if another module is concerned, or if the operator does not read why.
 */
import { parseArgs } from "node:util";
import { neighbours } from "./neighbour.ts";
import { type Act, acts } from "./noisy_module.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "10" }, only: { type: "string", multiple: true } },
});
const seconds = Number(values.seconds);
if (!(seconds > 0)) throw new RangeError("--seconds must be a positive number");
for (const act of values.only ?? []) {
  if (!Object.hasOwn(acts, act)) throw new RangeError(`--only must be one of: ${Object.keys(acts).join(", ")}`);
}
const ms = (value: number) => `${value.toFixed(2)} ms`;
let failed = 0;
let base = 0;
for await (const report of neighbours({ seconds, ...(values.only && { only: values.only as Act[] }) })) {
  const { act, median, p99, requests, notice, failures } = report;
  if (act === "nothing") base = p99;
  const above = act === "nothing" ? "" : `, ${ms(p99 - base)} above the base`;
  console.log(`${act}: median ${ms(median)}, p99 ${ms(p99)}${above} (${requests} requests)`);
  if (notice !== "") console.log(`  the operator reads: ${notice}`);
  for (const failure of failures.slice(0, 5)) console.log(`  FAILED ${failure}`);
  failed += failures.length;
}
console.log(failed === 0 ? "nobody else was concerned" : `${failed} failures`);
process.exitCode = failed === 0 ? 0 : 1;
