/**
 * Runs several test files in one process: half of the CPU time of a small file is the start of Node
 * and the import of the code that it tests. Only files that leave the process as they found it may
 * share one. Their source text shows whether they do.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const tests = fileURLToPath(new URL("..", import.meta.url));

/**
 * Files that share a process also share its timeout: this number is low enough for a busy machine.
 */
const MAX_FILES = 40;

/** Files that start programs spend most of their time waiting for them: each counts as two. */
const WITH_PROGRAMS = /\b(?:child_process|spawn|Program)\b|\bPlace\.\w/;

/**
 * Files that replay hundreds of calls or read all sources: each counts as two, so few of them share
 * a process.
 */
const OF_MANY_CALLS = /\/test\/contract\//;

/**
 * Words of files that measure a property of the whole process: its memory, its open sockets or its
 * timers. Other files may change, for example, `process.env`, as long as they restore it.
 */
const OF_THE_PROCESS =
  /\b(?:memoryUsage|heap|getActiveResourcesInfo|async_hooks|diagnostics_channel)\b|(?<![\w.])gc\(|(?<!\.)\bmock\./;

/**
 * Files that take a large part of a run: they begin first, so that the run does not wait for them
 * at its end.
 */
const LONG = /\/test\/(?:clients|endurance)\//;

/** An `await` at the top level: a suite does not wait for it before its tests are declared. */
const WAITING = /^(?!\/|.*\basync\b)(?:\S.*)?\bawait\b/m;

/**
 * A helper with hooks, which would belong to the first file that imports it, or a helper that is
 * also a program.
 */
const HELPER_OF_ONE = /^(?:before|after)(?:Each)?\(|\bprocess\.argv\[1\]/m;

/** Imports of helpers in the tests' folders. */
const HELPERS = /^(?:import\b|\} from).* ?"((?:\.|#test\/)[^"]+)";$/gm;

/**
 * Returns whether a test file may share its process with others.
 * @param {string} file absolute path
 */
export function isSociable(file) {
  const text = readFileSync(file, "utf8");
  if (LONG.test(file) || [OF_THE_PROCESS, WAITING].some((sign) => sign.test(text))) return false;
  return [...text.matchAll(HELPERS)].every(([, name]) => {
    const helper = name.startsWith("#") ? join(tests, name.slice("#test/".length)) : join(dirname(file), name);
    // A missing file is reported when the test file runs.
    return !existsSync(helper) || ![WAITING, HELPER_OF_ONE].some((sign) => sign.test(readFileSync(helper, "utf8")));
  });
}

/** @param {string} file absolute path */
export const isLong = (file) => LONG.test(file);

/**
 * Writes the files that Node's runner gets instead of these: one for each long file, and one for
 * each group of other files. The runner sorts its files, so their names decide the order in which
 * they begin. `remove` deletes them.
 * @param {readonly string[]} files absolute paths
 * @param {readonly string[]} [long] absolute paths; these begin before the others
 */
export function together(files, long = []) {
  if (files.length < 2) return { files: [...long, ...files], remove: () => undefined };
  const folder = mkdtempSync(join(tmpdir(), "modhost-together-"));
  const made = [];
  const write = (name, text) => {
    const file = join(folder, `${String(made.length + 1).padStart(3, "0")}${name}.test.mjs`);
    writeFileSync(file, text);
    made.push(file);
  };
  for (const file of long)
    write(`-${basename(file, ".test.ts")}`, `import ${JSON.stringify(pathToFileURL(file).href)};\n`);
  for (const neighbours of grouped(files)) write("", textOf(neighbours));
  return { files: made, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function grouped(files) {
  const groups = [];
  let room = 0;
  for (const file of files) {
    const size = OF_MANY_CALLS.test(file) || WITH_PROGRAMS.test(readFileSync(file, "utf8")) ? 2 : 1;
    if (size > room) {
      groups.push([]);
      room = MAX_FILES;
    }
    groups.at(-1).push(file);
    room -= size;
  }
  return groups;
}

/** Each file becomes a suite of its own, so that its hooks apply to its own tests only. */
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
