/**
 * Several test files in one process: half of the CPU time of a small file is the start of Node and the import of what it
 * tests. Only files that leave the process as they found it may share one, and that is told by their text.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The runner gives a process of several files the time of one: few enough that a busy machine ends in time. */
const MAX_FILES = 8;

/**
 * Words of files that look at, or change, what belongs to the whole process; that start programs, and so save little by
 * sharing a process of their own; or that measure.
 */
const OF_THE_PROCESS = [
  /\bprocess\.|\bgc\(/,
  /\b(?:globalThis|mock|performance|heap|memoryUsage|async_hooks|worker_threads|diagnostics_channel)\b/,
  /\b(?:child_process|spawn|Program|Place|RpcServer)\b/,
];

/** Without a suite around them hooks are those of all files of the process, and so are tests that are declared late. */
const OF_THE_FILE = [/^(?:before|after)(?:Each)?\(/m, /^(?!.*\basync\b)(?:\S.*)?\bawait\b/m];

/** May a test file with this text share its process with others? */
export function isSociable(text) {
  return ![...OF_THE_PROCESS, ...OF_THE_FILE].some((sign) => sign.test(text));
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
    const imports = files.slice(at, at + MAX_FILES).map((file) => `import ${JSON.stringify(pathToFileURL(file))};\n`);
    const group = join(folder, `${groups.length + 1}.test.mjs`);
    writeFileSync(group, imports.join(""));
    groups.push(group);
  }
  return { files: groups, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
