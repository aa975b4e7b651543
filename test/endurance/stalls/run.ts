/**
 * `npm run test:stalls -- [--rounds N] [--clients N] [--files N] [--seconds N] [--burners N]`: the long form. `--seconds` is
 * how long processes are suspended at most; with 20 burners the machine has a load of more than 20.
 */
import { parseArgs } from "node:util";
import { stalls } from "./stalls.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "10" },
    clients: { type: "string", default: "4" },
    files: { type: "string", default: "2000" },
    seconds: { type: "string", default: "5" },
    burners: { type: "string", default: "20" },
  },
});
// What it has started ends with it.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const { calls, failures, stops } = await stalls({
  clients: Number(values.clients),
  rounds: Number(values.rounds),
  files: Number(values.files),
  timers: Number(values.seconds) / 4,
  longest: Number(values.seconds),
  burners: Number(values.burners),
  random: Math.random,
  report: (line) => console.log(line),
});
for (const failure of failures) console.log(failure);
console.log(`${stops} suspensions\n${calls - failures.length} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 && calls > 0 ? 0 : 1;
