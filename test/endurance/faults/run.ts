/**
 * `npm run test:faults -- [--requests 3000] [--reloads 200]`: a module beside one that throws, rejects, hogs, loops, leaks or
 * exits, isolated and not: the times of its answers, beside those where the other does nothing. Then the heap of the host while an
 * isolated module is reloaded. Loops, leaks and exits of a module that is not isolated end the process: they are left out.
 */
import { parseArgs } from "node:util";
import { createTestHost } from "#core/testing/index.ts";
import { heapUsed } from "#test/support/heap.ts";
import { type Fault, faults, misbehave } from "./faults.ts";
import { folderOfFiles } from "./files.ts";

const { values } = parseArgs({
  options: { requests: { type: "string", default: "3000" }, reloads: { type: "string", default: "200" } },
});
const requests = Number(values.requests);
const fatal: ReadonlySet<Fault> = new Set(["exits", "loops", "leaks"]);
let failures = 0;

for (const isolated of [false, true]) {
  let usual = 0;
  for (const fault of Object.keys(faults) as Fault[]) {
    if (!isolated && fatal.has(fault)) continue;
    const { answered, failed, p50, p99, statuses } = await misbehave(fault, { isolated, requests, every: 20 });
    if (fault === "nothing") usual = p99;
    failures += failed;
    const others = [...statuses].map(([status, count]) => `${count} x ${status}`).join(", ");
    const form = isolated ? "isolated" : "plain   ";
    const times = `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (${(p99 / usual).toFixed(1)} x)`;
    console.log(`${form} ${fault.padEnd(8)} ${answered} answered, ${failed} failed, ${times}; the other: ${others}`);
  }
}

const reloads = Number(values.reloads);
if (reloads > 0) {
  const text =
    "export const isolated = true; export const depends = ['http']; export default (module) => module.provides('http', { route: { GET: () => 'ok' } });";
  await using folder = await folderOfFiles({ "mod_wild.js": text });
  await using running = await createTestHost({ config: { plugin_paths: [folder.path], plugin_autoload: true } });
  const settled = Math.min(20, Math.floor(reloads / 2));
  let before = 0;
  for (let count = 1; count <= reloads; count += 1) {
    await running.reload("wild");
    if (count === settled) before = await heapUsed();
  }
  const growth = ((await heapUsed()) - before) / (reloads - settled);
  console.log(`${reloads} reloads of an isolated module: the heap grew by ${(growth / 1024).toFixed(2)} KB each`);
}
console.log(failures === 0 ? "the sound module answered everything" : `${failures} requests failed`);
process.exitCode = failures === 0 ? 0 : 1;
