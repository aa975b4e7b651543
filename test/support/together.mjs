/**
 * Several test files in one process: half of the CPU time of a small file is the start of Node and
 * the import of what it tests. Only files that leave the process as they found it may share one,
 * and that is told by their text.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const tests = fileURLToPath(new URL("..", import.meta.url));

/**
 * The files of a process have the time of one together: few enough that a busy machine ends in
 * time.
 */
const MAX_FILES = 40;

/** Files that start programs spend most of their time waiting for them: each counts as two. */
const WITH_PROGRAMS = /\b(?:child_process|spawn|Program)\b|\bPlace\.\w/;

/** Those that play hundreds of calls or read all sources: few of them to a process. */
const OF_MANY_CALLS = /\/test\/contract\//;

/**
 * Words of files that measure what belongs to the whole process: its memory, its open sockets and
 * timers. Others may change something of it, as `process.env` or a mock of their own, as long as
 * they change it back.
 */
const OF_THE_PROCESS =
  /\b(?:memoryUsage|heap|getActiveResourcesInfo|async_hooks|diagnostics_channel)\b|(?<![\w.])gc\(|(?<!\.)\bmock\./;

/**
 * Files that take a good part of the time of a process: they begin first, or the run would wait for
 * them at its end.
 */
const LONG = /\/test\/(?:clients|endurance)\//;

/** A suite does not wait for what is declared in it. */
const WAITING = /^(?!\/|.*\basync\b)(?:\S.*)?\bawait\b/m;

/**
 * Hooks of a helper would be those of the first file that imports it; one that is a program, too,
 * waits when it is run.
 */
const HELPER_OF_ONE = /^(?:before|after)(?:Each)?\(|\bprocess\.argv\[1\]/m;

/** What a file imports of the tests. */
const HELPERS = /^(?:import\b|\} from).* ?"((?:\.|#test\/)[^"]+)";$/gm;

/**
 * May a test file share its process with others?
 * @param {string} file absolute
 */
export function isSociable(file) {
  const text = readFileSync(file, "utf8");
  if (LONG.test(file) || [OF_THE_PROCESS, WAITING].some((sign) => sign.test(text))) return false;
  return [...text.matchAll(HELPERS)].every(([, name]) => {
    const helper = name.startsWith("#") ? join(tests, name.slice("#test/".length)) : join(dirname(file), name);
    // One that is missing is told when the file is run.
    return !existsSync(helper) || ![WAITING, HELPER_OF_ONE].some((sign) => sign.test(readFileSync(helper, "utf8")));
  });
}

/** @param {string} file absolute */
export const isLong = (file) => LONG.test(file);

/**
 * Writes what Node's runner is given in place of these files: one file for each that is long, and
 * one for some neighbours each. The runner sorts what it is given, so their names say in which
 * order they begin. `remove` deletes them.
 * @param {readonly string[]} files absolute
 * @param {readonly string[]} [long] absolute; they begin before the others
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
