/**
 * `npm run watch`: runs the tests that a change affects, after every change. It begins with the
 * files that git reports as changed.
 *
 * npm run watch [-- --once] [-- OPTION...]
 *
 * `--once` ends after that. Options are passed to `test/run.mjs`. A change during a run stops it.
 * The tests that it has not run yet are run together with those of the new change.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Tree, watched } from "./tree.ts";

/** The nearest tests run first, in a run of their own, because they are the most likely to fail. */
const batchSize = 12;
/** Milliseconds in which an editor writes all files of one change. */
const settle = 150;

const root = fileURLToPath(new URL("../../", import.meta.url));
const options = process.argv.slice(2).filter((option) => option !== "--once");
const isOnce = process.argv.includes("--once");

const pending = new Set(changedInGit());
let waiting: string[] = [];
let runner: ChildProcess | undefined;
let awake = Promise.withResolvers<void>();

if (!isOnce) {
  for (const folder of watched) {
    watch(join(root, folder), { recursive: true }, (_, name) => {
      if (name === null || /(^|\/)\.|~$/.test(name)) return;
      pending.add(join(folder, name));
      runner?.kill();
      awake.resolve();
    });
  }
}

for (;;) {
  const { size } = pending;
  waiting = [...new Set([...new Tree(root).affected(pending), ...waiting])];
  pending.clear();
  const ok = waiting.length === 0 || (await runAll(size));
  if (isOnce) {
    process.exitCode = ok ? 0 : 1;
    break;
  }
  if (pending.size === 0) {
    console.log("\nWaiting for a change; Ctrl+C ends.");
    await awake.promise;
  }
  awake = Promise.withResolvers();
  await new Promise((resolve) => setTimeout(resolve, settle));
}

/** Runs the waiting tests batch by batch, until one fails or a file changes. */
async function runAll(changes: number): Promise<boolean> {
  console.log(`\n${waiting.length} test files are affected by ${changes} changed files`);
  for (let first = true; waiting.length > 0; first = false) {
    const batch = first ? waiting.slice(0, batchSize) : waiting;
    console.log(batch.length > batchSize ? `\nand ${batch.length} more` : `\n${batch.join("\n")}`);
    runner = spawn(process.execPath, [join(root, "test/run.mjs"), ...options, ...batch], {
      cwd: root,
      stdio: "inherit",
    });
    const [code] = await once(runner, "exit");
    runner = undefined;
    if (pending.size > 0) return false;
    waiting = code === 0 ? waiting.slice(batch.length) : [];
    if (code !== 0) return false;
  }
  return true;
}

/**
 * Returns the files that differ from the last commit, including untracked ones. Empty outside of a
 * repository.
 */
function changedInGit(): string[] {
  try {
    const said = execFileSync("git", ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return said
      .split("\0")
      .map((line) => line.slice(3))
      .filter((file) => file !== "");
  } catch {
    return [];
  }
}
