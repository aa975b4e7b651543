/**
 * `npm run test:churn -- [--minutes 10] [--peers 2]`: peers connect and disconnect while a node
 * adds, reads and pins with them, publishes and resolves names, exchanges messages and carries
 * streams. Exits with 1 if a result is wrong, or if resources are left after they have
 * disconnected: heap, sockets, listeners, connections or wants.
 */
import { parseArgs } from "node:util";
import { churnNetwork, type Look } from "./network/churn.ts";
import { heapGrowth } from "./network/growth.ts";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, peers: { type: "string", default: "2" } },
});
const minutes = Number(values.minutes);
const peers = Number(values.peers);
if (!(minutes > 0)) throw new RangeError("--minutes must be greater than 0");
if (!Number.isInteger(peers) || peers < 1) throw new RangeError("--peers must be an integer of at least 1");

const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MB`;

function print({ rounds, holdings, left }: Look): void {
  const handles = holdings.handles
    .map(([kind, count]) => `${count} ${kind}`)
    .filter((text) => !text.includes("open file"));
  console.log(
    `after ${rounds} rounds: heap ${megabytes(holdings.heap)}, outside ${megabytes(holdings.outside)}; ${handles.join(", ")}` +
      (left.length === 0 ? "" : `; LEFT ${left.join(", ")}`),
  );
}

let end: number | undefined;
// The time counts from the first round, which takes place in any case: the time of a node's start
// depends on the machine.
const more = () => performance.now() < (end ??= performance.now() + minutes * 60_000);
const report = await churnNetwork({ peers, looks: 2, more, onLook: print });
const { grown, allowed } = heapGrowth(report.looks);
const problems = [
  ...report.wrong,
  ...(report.looks.at(-1)?.left ?? []).map((what) => `left: ${what}`),
  ...(grown > allowed ? [`the heap grew by ${megabytes(grown)}, more than ${megabytes(allowed)}`] : []),
];
for (const problem of problems.slice(0, 20)) console.log(`FAILED ${problem}`);
console.log(
  `${report.rounds} rounds with ${peers} peers each, ${report.checks} results, ${report.wrong.length} wrong; ` +
    `${report.stored} files read again; heap grew by ${megabytes(grown)}`,
);
process.exitCode = problems.length === 0 && report.rounds > 0 ? 0 : 1;
