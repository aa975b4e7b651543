/** `npm run test:fuzz -- --seconds 60 [--seed N] [--from N] [--count N]`: prints a summary, exits 1 on a failure. */
import { parseArgs } from "node:util";
import { fuzz } from "./fuzz.ts";

const usage = "npm run test:fuzz -- [--seconds 60] [--seed N] [--from EXCHANGE] [--count N]";

function valuesOf() {
  try {
    const { values } = parseArgs({
      options: {
        seconds: { type: "string", default: "60" },
        seed: { type: "string", default: String(Date.now() % 2 ** 31) },
        from: { type: "string", default: "0" },
        count: { type: "string", default: "Infinity" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    return values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\nUsage: ${usage}`);
    process.exit(2);
  }
}

const values = valuesOf();
if (values.help) {
  console.log(`Usage: ${usage}`);
  process.exit(0);
}

console.log(`seed ${values.seed}, ${values.seconds} s`);
const summary = await fuzz({
  seconds: Number(values.seconds),
  seed: Number(values.seed),
  from: Number(values.from),
  count: Number(values.count),
});
const statuses = Object.entries(summary.statuses).map(([status, count]) => `${status}: ${count}`);
console.log(
  `${summary.exchanges} damaged exchanges (${statuses.join(", ")}), ${summary.healthy} healthy requests in between`,
);
for (const failure of summary.failures) console.log(`FAILED ${failure}`);
if (summary.failures.length === 0) console.log("no crash, no hang, no 5xx but 505, no temporary file left");
else console.log(`repeat one with: --seed ${summary.seed} --from EXCHANGE --count 1`);
process.exitCode = summary.failures.length === 0 ? 0 : 1;
