/**
 * Groups test files into processes: half of the CPU time of a small file is the start of Node and
 * the import of what it tests, which neighbours share.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

/** Few enough that a process ends long before its time limit on a busy machine. */
const FILES_PER_PROCESS = 30;

/** Takes minutes, mostly waiting. The run would wait for such a file at its end. */
const LONG = /\/test\/(?:clients|endurance)\//;

/** Measures something of the whole process, mocks a global, or waits at its top level. */
const ALONE = /\.alone\.test\.ts$/;

/**
 * Writes the files that Node's runner gets instead of these: one for each file that runs alone, and
 * one for each group of neighbours. The runner sorts its files, so the names of the written files
 * define the order: long ones start first. `remove` deletes them.
 * @param {readonly string[]} files absolute
 */
export function together(files) {
  if (files.length < 2) return { files, remove: () => undefined };
  const folder = mkdtempSync(join(tmpdir(), "modhost-together-"));
  const written = [];
  const write = (name, text) => {
    const file = join(folder, `${String(written.length + 1).padStart(3, "0")}${name}.test.mjs`);
    writeFileSync(file, text);
    written.push(file);
  };
  const { long = [], alone = [], shared = [] } = Object.groupBy(files, kindOf);
  const writeSingle = (file) =>
    write(`-${basename(file, ".test.ts")}`, `import ${JSON.stringify(pathToFileURL(file).href)};\n`);
  long.forEach(writeSingle);
  for (let at = 0; at < shared.length; at += FILES_PER_PROCESS)
    write("", textOf(shared.slice(at, at + FILES_PER_PROCESS)));
  alone.forEach(writeSingle);
  return { files: written, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function kindOf(file) {
  if (LONG.test(file)) return "long";
  return ALONE.test(file) ? "alone" : "shared";
}

/**
 * Each file in a suite of its own, so that its hooks are for its own tests. `require` refuses a
 * file that waits at its top level, whose tests would not belong to the suite.
 */
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
