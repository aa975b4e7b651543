/**
 * `npm run test:churn-modules -- --reloads 1000 [--run RUN] [--size 10000]`: reloads one module
 * that often while clients use it, with open uploads, downloads, streams and websockets: trusted,
 * isolated, and sandboxed. In the host's thread, each reload costs memory that V8
 * never frees. The cost for files of several sizes is printed next to it.
 *
 * `npm run test:churn-modules -- --config-changes 200`: changes the configuration that often while
 * clients use the server, with an open stream and an open websocket. Nothing else runs then.
 *
 * `npm run test:churn-modules -- --takeovers 20`: that many processes take over from each other,
 * one after the other, under requests, uploads and downloads. Nothing else runs then.
 *
 * `npm run test:churn-modules -- [--cycles 200] [--example NAME]`: loads, reloads and unloads every
 * example module that often while clients use it. Prints the number of responses and the growth of
 * the heap. Exits with 1 on a failure.
 *
 * An ES module is never freed once it is evaluated. So code that is evaluated at each load makes
 * the heap grow, whoever imports it. Two further things are tested: a module whose code is
 * evaluated once does not make the heap grow, and no module object of an unloaded instance stays in
 * memory in either case.
 */
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { exampleNames } from "#test/contract/docs/examples/support.ts";
import { heapUsed } from "#test/support/heap.ts";
import { type ChurnReport, churn, codeFile, type ModuleForm } from "./churn.ts";
import { changeConfig } from "./config_changes.ts";
import { costOfImport, type ReloadReport, reloadUnderLoad } from "./reloads.ts";
import { takeOverAgain } from "./takeovers.ts";

const { values } = parseArgs({
  options: {
    cycles: { type: "string", default: "200" },
    example: { type: "string", multiple: true },
    "config-changes": { type: "string" },
    takeovers: { type: "string" },
    reloads: { type: "string" },
    run: { type: "string" },
    size: { type: "string", default: "0" },
  },
});
const cycles = Number(values.cycles);
if (!Number.isInteger(cycles) || cycles < 2) throw new RangeError("--cycles must be an integer of at least 2");
/** All caches are full after these cycles. */
const settled = Math.min(20, Math.floor(cycles / 2));
/**
 * Bytes by which the heap may differ, whatever the number of cycles: the engine's own caches vary
 * as much.
 */
const tolerance = 2 * 1024 * 1024;
const forms = { value: "code evaluated once", file: "code evaluated at each load" } as const;

const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MB`;
const kilobytes = (bytes: number) => `${(bytes / 1024).toFixed(1)} KB`;

if (values["config-changes"] !== undefined) process.exit(await runConfigChanges(Number(values["config-changes"])));
if (values.reloads !== undefined) process.exit(await runReloads(Number(values.reloads), Number(values.size)));

if (values.takeovers !== undefined) process.exit(await runTakeovers(Number(values.takeovers)));

let failed = 0;
for (const example of exampleNames.filter((name) => values.example?.includes(name) ?? true)) {
  for (const form of Object.keys(forms) as ModuleForm[]) {
    const report = await churn(example, { cycles, form, measureAt: [settled, cycles] });
    const problems = [...report.failures, ...heapProblems(report)];
    failed += problems.length;
    print(report);
    for (const problem of problems.slice(0, 5)) console.log(`  FAILED ${problem}`);
  }
  console.log(`  a plain import of its file, never called: ${kilobytes(await plainImport(example))} each\n`);
}
console.log(failed === 0 ? "no request failed, and nothing was left behind" : `${failed} failures`);
process.exitCode = failed === 0 ? 0 : 1;

function growth({ heap }: ChurnReport): number {
  return (heap.get(cycles) ?? 0) - (heap.get(settled) ?? 0);
}

function heapProblems(report: ChurnReport): string[] {
  const { form, instances, survivors } = report;
  const problems: string[] = [];
  if (form === "value" && growth(report) > tolerance) problems.push(`the heap grew by ${megabytes(growth(report))}`);
  if (survivors > 1) problems.push(`${survivors} of ${instances} instances are still in memory`);
  return problems;
}

function print(report: ChurnReport): void {
  const { example, form, responses, duringReload, spanning, neighbour, instances, survivors, heap } = report;
  const each = growth(report) / (cycles - settled);
  // Each cycle has a load and a reload.
  const perEvaluation = form === "file" ? `, ${kilobytes(each / 2)} an evaluation` : "";
  console.log(`${example}, ${forms[form]}: ${report.cycles} loads, reloads and unloads`);
  console.log(
    `  ${responses} requests, ${duringReload} of them during a reload; ${neighbour} of another app at the same time`,
  );
  if (spanning > 0)
    console.log(`  ${spanning} more began before the module was replaced or unloaded, and ended correctly afterwards`);
  console.log(
    `  heap ${megabytes(heap.get(settled) ?? 0)} after ${settled} cycles, ${megabytes(heap.get(cycles) ?? 0)} after ` +
      `${cycles}: ${kilobytes(each)} a cycle${perEvaluation}; ${survivors} of ${instances} instances in memory`,
  );
}

async function runConfigChanges(changes: number): Promise<number> {
  if (!Number.isInteger(changes) || changes < 5)
    throw new RangeError("--config-changes must be an integer of at least 5");
  const { applied, refused, responses, duringChange, echoed, failures, times, grown } = await changeConfig({ changes });
  const problems = [...failures];
  if (grown > tolerance) problems.push(`the heap grew by ${megabytes(grown)}`);
  const at = (share: number) => `${(times[Math.floor((times.length - 1) * share)] ?? 0).toFixed(0)} ms`;
  console.log(`${applied} changes of the configuration, and ${refused} invalid ones that changed nothing`);
  console.log(
    `  ${responses} requests, ${duringChange} of them during a change; ${echoed} messages and pieces came through`,
  );
  console.log(`  a change took ${at(0.5)} (median), ${at(0.99)} (p99); the heap grew by ${megabytes(grown)}`);
  for (const problem of problems.slice(0, 10)) console.log(`  FAILED ${problem}`);
  console.log(problems.length === 0 ? "no request failed" : `${problems.length} failures`);
  return problems.length === 0 ? 0 : 1;
}

async function runReloads(reloads: number, size: number): Promise<number> {
  if (!Number.isInteger(reloads) || reloads < 5) throw new RangeError("--reloads must be an integer of at least 5");
  let failed = 0;
  const runs = (["trusted", "isolated", "sandboxed"] as const).filter((name) => (values.run ?? name) === name);
  if (runs.length === 0) throw new RangeError("--run must be trusted, isolated or sandboxed");
  for (const run of runs) {
    const report = await reloadUnderLoad({ reloads, run, size });
    const problems = [...report.failures];
    // The heap of a worker or sandbox is freed with it: what remains is the host's own.
    if (run !== "trusted" && report.heap * reloads > 2 * tolerance) problems.push("the heap of the host grew");
    if (report.left.processes > 0) problems.push(`${report.left.processes} processes are left`);
    if (report.left.mounts > 0) problems.push(`${report.left.mounts} mounts are left`);
    if (report.left.descriptors > 16) problems.push(`${report.left.descriptors} descriptors are left`);
    failed += problems.length;
    printReloads(run, report);
    for (const problem of problems.slice(0, 10)) console.log(`  FAILED ${problem}`);
  }
  for (const bytes of [0, 10_000, 100_000]) {
    const cost = kilobytes(await costOfImport(bytes));
    console.log(`an import of an ES module of ${kilobytes(Math.max(bytes, 19))}, never used: ${cost} of heap`);
  }
  console.log(failed === 0 ? "no request failed" : `${failed} failures`);
  return failed === 0 ? 0 : 1;
}

function printReloads(run: string, report: ReloadReport): void {
  const { reloads, responses, duringReload, spanning, echoed, times, heap, resident, left } = report;
  const at = (share: number) => `${(times[Math.floor((times.length - 1) * share)] ?? 0).toFixed(0)} ms`;
  console.log(`${run}: ${reloads} reloads, which took ${at(0.5)} (median), ${at(0.99)} (p99)`);
  console.log(`  ${responses} requests, ${duringReload} of them during a reload; its state was passed on each time`);
  console.log(
    `  ${spanning} uploads, downloads, streams and websockets of it were open at a reload, and ended correctly`,
  );
  console.log(`  ${echoed} messages and pieces of another module's websocket and stream, which stayed open`);
  console.log(`  a reload cost ${kilobytes(heap)} of heap, ${kilobytes(resident)} of the process`);
  console.log(`  left: ${left.processes} processes, ${left.descriptors} descriptors, ${left.mounts} mounts`);
}

async function runTakeovers(wanted: number): Promise<number> {
  if (!Number.isInteger(wanted) || wanted < 1) throw new RangeError("--takeovers must be an integer of at least 1");
  const report = await takeOverAgain(wanted);
  const { takeovers, times, requests, uploads, downloads, bytes, longest, pids, lost, carried } = report;
  const seconds = (ms = 0) => `${(ms / 1000).toFixed(2)} s`;
  const [count, expected] = carried;
  const problems = [
    ...lost,
    ...(count === expected ? [] : [`the count that is passed on is ${count}, not ${expected}`]),
  ];
  console.log(`${takeovers} takeovers, ${pids.size} processes have responded`);
  console.log(`  ${requests} requests, ${uploads} uploads and ${downloads} downloads of 2 s (${bytes} bytes)`);
  console.log(
    `  a takeover took ${seconds(times[Math.floor(times.length / 2)])} (median), ${seconds(times.at(-1))} (longest)`,
  );
  console.log(`  the longest wait of a request: ${seconds(longest)}`);
  for (const problem of problems.slice(0, 10)) console.log(`  FAILED ${problem}`);
  console.log(problems.length === 0 ? "nothing was lost" : `${problems.length} lost`);
  return problems.length === 0 ? 0 : 1;
}

/** Returns the bytes of heap that one evaluation of the file costs without a host. */
async function plainImport(example: (typeof exampleNames)[number]): Promise<number> {
  const url = pathToFileURL(codeFile(example)).href;
  const times = 100;
  const before = await heapUsed();
  for (let count = 0; count < times; count += 1) await import(`${url}?plain=${count}`);
  return ((await heapUsed()) - before) / times;
}
