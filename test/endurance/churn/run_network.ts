/**
 * `npm run test:churn -- [--minutes 10] [--peers 2]`: peers come and go while a node adds, reads
 * and pins with them, publishes and resolves names, exchanges messages and carries streams. Exits 1
 * when an answer is wrong, or something is left of those who have gone: heap, sockets, listeners,
 * connections, wants.
 */
import { parseArgs } from "node:util";
import { churnNetwork, type Look } from "./network/churn.ts";
import { heapGrowth } from "./network/growth.ts";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, peers: { type: "string", default: "2" } },
});
const minutes = Number(values.minutes);
const peers = Number(values.peers);
if (!(minutes > 0)) throw new RangeError("--minutes takes a number above 0");
if (!Number.isInteger(peers) || peers < 1) throw new RangeError("--peers takes a whole number from 1");

const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MB`;

function print({ rounds, held, left }: Look): void {
  const handles = held.handles.map(([kind, count]) => `${count} ${kind}`).filter((text) => !text.includes("open file"));
  console.log(
    `after ${rounds} rounds: heap ${megabytes(held.heap)}, outside ${megabytes(held.outside)}; ${handles.join(", ")}` +
      (left.length === 0 ? "" : `; LEFT ${left.join(", ")}`),
  );
}

let end: number | undefined;
// The time counts from the first round, which there is in any case: how long a node takes to start
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
  `${report.rounds} rounds with ${peers} peers each, ${report.checks} answers, ${report.wrong.length} wrong; ` +
    `${report.kept} files read again; heap grew by ${megabytes(grown)}`,
);
process.exitCode = problems.length === 0 && report.rounds > 0 ? 0 : 1;
