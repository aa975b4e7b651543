/**
 * `npm run test:fuzz -- --seconds 60 [--what host|node|readers|delay] [--seed N] [--from N] [--count N]`:
 * prints a summary for each, and the longest block of the event loop. Exits with 1 on a failure.
 */
import { parseArgs } from "node:util";
import { targets as readers, worstOf } from "./delay/delay.ts";
import { MAX_TURN_MS, slowdown } from "./delay/meter.ts";
import { type FuzzOptions, fuzz, type WorstTurn } from "./fuzz.ts";
import { fuzzNode } from "./node/fuzz.ts";
import { fuzzReaders } from "./readers/readers.ts";

const usage =
  "npm run test:fuzz -- [--seconds 60] [--what host|node|readers|delay] [--seed N] [--from EXCHANGE] [--count N]";

/** Prints a summary. Resolves to the failures. */
const targets: Readonly<Record<string, (options: FuzzOptions) => Promise<readonly string[]>>> = {
  async host(options) {
    const { statuses, exchanges, healthy, failures, worst } = await fuzz(options);
    console.log(`host: ${exchanges} damaged exchanges (${listed(statuses)}), ${healthy} healthy requests in between`);
    if (failures.length === 0) console.log("host: no crash, no hang, no 5xx but 505, no temporary file left");
    return [...failures, ...judged("host", worst)];
  },
  async node(options) {
    const { rounds, failures, worst } = await fuzzNode(options);
    console.log(`node: rounds ${listed(rounds)}`);
    if (failures.length === 0)
      console.log("node: no crash, no hang, no defect reported, and stored content reads as it was sent");
    return [...failures, ...judged("node", worst)];
  },
  async readers(options) {
    const { taken, refused, failures } = await fuzzReaders(options);
    console.log(`readers: ${taken + refused} damaged inputs: ${taken} read, ${refused} rejected`);
    if (failures.length === 0) console.log("readers: no defect, and written values read the same again");
    return failures;
  },
  async delay() {
    const failures: string[] = [];
    // Measures the speed of the machine while it is idle.
    for (let times = 0; times < 10; times += 1) slowdown();
    for (const reader of readers) {
      const { target, shape, size, ms, slowdown: busy, atOnce } = await worstOf(reader);
      const line = `${target}: ${ms.toFixed(1)} ms of CPU time in one turn, for ${size} bytes of ${shape}`;
      const quiet = ms / busy;
      const isMore = quiet > MAX_TURN_MS;
      const more = `${busy > 1 ? `, ${quiet.toFixed(1)} on a machine that is not busy` : ""}${isMore ? `, more than ${MAX_TURN_MS}` : ""}`;
      if (ms > 2 * MAX_TURN_MS && atOnce === undefined) failures.push(line);
      else console.log(`delay: ${line}${more}${isMore && atOnce ? `: ${atOnce}` : ""}`);
    }
    return failures;
  },
};

/**
 * CPU time of a turn that counts as a failure in milliseconds. Clients, several requests at once
 * and the garbage collection share the loop with the tested code: so it is four times the limit for
 * a single input.
 */
const MAX_LIVE_TURN_MS = 4 * MAX_TURN_MS;

/** Prints the longest turn. Returns what is wrong with it. */
function judged(name: string, { ms, during }: WorstTurn): readonly string[] {
  const line = `the longest turn of the event loop took ${ms.toFixed(1)} ms of CPU time, ${during}`;
  if (ms > MAX_LIVE_TURN_MS) return [line];
  console.log(`${name}: ${line}`);
  return [];
}

const listed = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts)
    .map(([name, count]) => `${name}: ${count}`)
    .join(", ");

function valuesOf() {
  try {
    const { values } = parseArgs({
      options: {
        seconds: { type: "string", default: "60" },
        what: { type: "string", multiple: true, default: Object.keys(targets) },
        seed: { type: "string", default: String(Date.now() % 2 ** 31) },
        from: { type: "string", default: "0" },
        count: { type: "string", default: "Infinity" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    for (const name of values.what) if (!Object.hasOwn(targets, name)) throw new Error(`${name} cannot be fuzzed`);
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

console.log(`seed ${values.seed}, ${values.seconds} s each`);
const options: FuzzOptions = {
  seconds: Number(values.seconds),
  seed: Number(values.seed),
  from: Number(values.from),
  count: Number(values.count),
};
for (const name of values.what) {
  const failures = (await targets[name]?.(options)) ?? [];
  for (const failure of failures) console.log(`FAILED ${name}: ${failure}`);
  if (failures.length === 0) continue;
  if (name !== "delay") console.log(`repeat one with: --what ${name} --seed ${values.seed} --from NUMBER --count 1`);
  process.exitCode = 1;
}
