/**
 * `npm run test:stalls -- [--minutes N] [--rounds N] [--clients N] [--files N] [--seconds N] [--burners N]`:
 * the long form. After `--minutes` no client begins a new round, so that it ends on a slow machine,
 * too. `--seconds` is the maximum time for which processes are suspended. With 20 burners the
 * machine has a load of more than 20.
 */
import { parseArgs } from "node:util";
import { stalls } from "./stalls.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "6" },
    rounds: { type: "string", default: "10" },
    clients: { type: "string", default: "4" },
    files: { type: "string", default: "500" },
    seconds: { type: "string", default: "5" },
    burners: { type: "string", default: "20" },
  },
});
// The processes that it has started end with it.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const began = performance.now();
const { calls, failures, stops } = await stalls({
  clients: Number(values.clients),
  rounds: Number(values.rounds),
  lasts: 60 * Number(values.minutes),
  files: Number(values.files),
  timers: Number(values.seconds) / 4,
  longest: Number(values.seconds),
  burners: Number(values.burners),
  random: Math.random,
  report: (line) => console.log(line),
});
for (const failure of failures) console.log(failure);
const minutes = ((performance.now() - began) / 60_000).toFixed(1);
console.log(`${stops} suspensions in ${minutes} minutes\n${calls - failures.length} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 && calls >= 2 * Number(values.clients) ? 0 : 1;
