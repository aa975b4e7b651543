/**
 * `npm run test:crash -- --cycles N`: the long form, with kills, damaged files, backups, full disks
 * and containers.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { withoutNamespaces } from "#test/support/namespaces.ts";
import { backupCycles } from "./backups.ts";
import { crashCycles } from "./crash.ts";
import { damagedFiles } from "./damaged_files.ts";
import { fullDisk, mountSmallDisk } from "./full_disk.ts";
import { namespaceCycles } from "./namespaces.ts";
import { everyByte, tornBlocks, tornDeletions } from "./torn.ts";

const { values } = parseArgs({ options: { cycles: { type: "string", default: "50" } } });
const cycles = Number(values.cycles);
const folder = await mkdtemp(join(tmpdir(), "modhost-crash-"));
/** Number of kills for each backup that is killed and each that is restored. */
const KILLS_PER_BACKUP = 5;
/** Maximum number of cycles with nodes in namespaces of their own. */
const MAX_NAMESPACE_CYCLES = 10;
const outcome = { passed: 0, failed: 0, skipped: 0 };

function judge(wrong: readonly string[]): void {
  for (const line of wrong) console.log(`wrong: ${line}`);
  outcome[wrong.length === 0 ? "passed" : "failed"] += 1;
}

async function inFolder(name: string, run: (folder: string) => Promise<void>): Promise<void> {
  const own = join(folder, name);
  await mkdir(own);
  await run(own);
  await rm(own, { recursive: true, force: true });
}

try {
  await inFolder("kills", async (own) => {
    const result = await crashCycles({ folder: own, cycles, report: console.log });
    console.log(`${result.cycles} kills, ${result.acknowledged} operations acknowledged before them`);
    for (const [command, count] of Object.entries(result.counts).sort()) console.log(`  ${command}: ${count}`);
    judge(result.wrong);
  });
  await inFolder("damaged", async (own) => {
    judge(await damagedFiles({ folder: own, rounds: cycles * 4, report: console.log }));
  });
  console.log(
    `${(await tornBlocks(everyByte)) + (await tornDeletions(everyByte))} logs that end in the middle of a write`,
  );
  outcome.passed += 1;
  await inFolder("backups", async (own) => {
    const options = { folder: own, cycles: Math.ceil(cycles / KILLS_PER_BACKUP), report: console.log };
    const { restored, kills, acknowledged, wrong } = await backupCycles(options);
    console.log(
      `${restored} backups of a node at work restored, ${kills} killed, ${acknowledged} operations acknowledged`,
    );
    judge(wrong);
  });
  await inFolder("namespaces", async (own) => {
    if (withoutNamespaces !== false) {
      console.log(`skipped: nodes in namespaces, because ${withoutNamespaces}`);
      outcome.skipped += 1;
      return;
    }
    const options = { folder: own, cycles: Math.min(cycles, MAX_NAMESPACE_CYCLES), report: console.log };
    const { acknowledged, refused, wrong } = await namespaceCycles(options);
    console.log(`${acknowledged} adds acknowledged in namespaces, ${refused} starts refused`);
    judge(wrong);
  });
  for (const toLastByte of [false, true]) {
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await inFolder(`full-${toLastByte}-${signal}`, async (own) => {
        const unmount = await mountSmallDisk(own, 32);
        if (unmount === undefined) {
          console.log("skipped: a full disk, because this user cannot mount a small file system");
          outcome.skipped += 1;
          return;
        }
        const options = { folder: own, toLastByte, signal, report: console.log };
        await fullDisk(options).then(judge).finally(unmount);
      });
    }
  }
  const { passed, failed, skipped } = outcome;
  console.log(`${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
