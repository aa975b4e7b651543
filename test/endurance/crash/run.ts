/** `npm run test:crash -- --cycles N`: the long form. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { crashCycles } from "./crash.ts";

const { values } = parseArgs({ options: { cycles: { type: "string", default: "50" } } });
const folder = await mkdtemp(join(tmpdir(), "modhost-crash-"));
try {
  const { cycles, acknowledged, counts, wrong } = await crashCycles({
    folder,
    cycles: Number(values.cycles),
    report: console.log,
  });
  for (const line of wrong) console.log(`wrong: ${line}`);
  console.log(`${cycles} kills, ${acknowledged} operations answered with success before them`);
  for (const [command, count] of Object.entries(counts).sort()) console.log(`  ${command}: ${count}`);
  console.log(`${wrong.length === 0 ? 1 : 0} passed, ${wrong.length === 0 ? 0 : 1} failed`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
