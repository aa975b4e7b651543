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

/** Waits for networks and disks for most of its time, too, which others use if it starts early. */
const WAITING = /\/test\/unit\/modules\/mod_(?:node|http_api)\//;

/** Measures something of the whole process, mocks a global, or waits at its top level. */
const ALONE = /\.alone\.test\.ts$/;

/**
 * Writes the files that Node's runner gets instead of these: one for each file that runs alone, and
 * one for each group of neighbours. The runner sorts its files, so the names of the written files
 * define the order: those that wait most start first, and those of one file, which fill the gaps,
 * last. `remove` deletes them.
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
  const { long = [], waiting = [], shared = [], alone = [] } = Object.groupBy(files, kindOf);
  const writeSingle = (file) =>
    write(`-${basename(file, ".test.ts")}`, `import ${JSON.stringify(pathToFileURL(file).href)};\n`);
  long.forEach(writeSingle);
  for (const neighbours of [waiting, shared])
    for (let at = 0; at < neighbours.length; at += FILES_PER_PROCESS)
      write("", textOf(neighbours.slice(at, at + FILES_PER_PROCESS)));
  alone.forEach(writeSingle);
  return { files: written, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function kindOf(file) {
  if (LONG.test(file)) return "long";
  if (ALONE.test(file)) return "alone";
  return WAITING.test(file) ? "waiting" : "shared";
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
