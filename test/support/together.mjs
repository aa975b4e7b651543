/**
 * Several test files in one process: half of the CPU time of a small file is the start of Node and the import of what it
 * tests. Only files that leave the process as they found it may share one, and that is told by their text.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const tests = fileURLToPath(new URL("..", import.meta.url));

/** The runner gives a process of several files the time of one: few enough that a busy machine ends in time. */
const MAX_FILES = 8;

/**
 * Words of files that look at, or change, what belongs to the whole process; that start programs, and so save little by
 * sharing a process of their own; or that measure.
 */
const OF_THE_PROCESS = [
  /\bprocess\.(?!(?:cwd|execPath|getuid|pid|platform|version)\b)|(?<![\w.])gc\(/,
  /\b(?:globalThis|mock|performance|heap|memoryUsage|async_hooks|worker_threads|diagnostics_channel)\b/,
  /\b(?:child_process|spawn|Program)\b|\bPlace\.\w/,
];

/** Files that take a good part of the time of a process. */
const LONG = /\/test\/(?:clients|endurance)\//;

/** A suite does not wait for what is declared in it. */
const WAITING = /^(?!\/|.*\basync\b)(?:\S.*)?\bawait\b/m;

/** Hooks of a helper would be those of the first file that imports it; one that is a program, too, waits when it is run. */
const HELPER_OF_ONE = /^(?:before|after)(?:Each)?\(|\bprocess\.argv\[1\]/m;

/** What a file imports of the tests. */
const HELPERS = /^(?:import\b|\} from).* ?"((?:\.|#test\/)[^"]+)";$/gm;

/**
 * May a test file share its process with others?
 * @param {string} file absolute
 */
export function isSociable(file) {
  const text = readFileSync(file, "utf8");
  if (LONG.test(file) || [...OF_THE_PROCESS, WAITING].some((sign) => sign.test(text))) return false;
  return [...text.matchAll(HELPERS)].every(([, name]) => {
    const helper = name.startsWith("#") ? join(tests, name.slice("#test/".length)) : join(dirname(file), name);
    // One that is missing is told when the file is run.
    return !existsSync(helper) || ![WAITING, HELPER_OF_ONE].some((sign) => sign.test(readFileSync(helper, "utf8")));
  });
}

/**
 * Writes what Node's runner is given in place of these files: one file for some neighbours each. `remove` deletes them.
 * @param {readonly string[]} files absolute
 */
export function together(files) {
  if (files.length < 2) return { files, remove: () => undefined };
  const folder = mkdtempSync(join(tmpdir(), "modhost-together-"));
  const groups = [];
  for (let at = 0; at < files.length; at += MAX_FILES) {
    const group = join(folder, `${groups.length + 1}.test.mjs`);
    writeFileSync(group, textOf(files.slice(at, at + MAX_FILES)));
    groups.push(group);
  }
  return { files: groups, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Each file in a suite of its own, so that its hooks are for its own tests. */
const textOf = (files) => `import { createRequire } from "node:module";
import { describe, test } from "node:test";

const load = createRequire(import.meta.url);
for (const file of ${JSON.stringify(files, null, 2)}) {
  describe(file, () => {
    try {
      load(file);
    } catch (error) {
      test("the file is imported", () => {
        throw error;
      });
    }
  });
}
`;
