/**
 * The files of a new PostgreSQL cluster. A test run makes them once and copies them, which takes a
 * tenth of the time.
 */
import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { eventually } from "../eventually.ts";
import type { Programs } from "./postgres_programs.ts";

/**
 * Makes the folder `data` as the user of the programs. That user needs write access to its parent
 * folder.
 * @throws Error if a program fails
 */
export async function newCluster(programs: Programs, data: string): Promise<void> {
  // `test/run.mjs` makes this folder and removes it at its end. A test that is started otherwise
  // makes its own cluster.
  const { TEST_RUN_FOLDER: run } = process.env;
  if (run === undefined) {
    initialize(programs, data);
    return;
  }
  const template = join(run, "postgres");
  if (!existsSync(template)) await keep(programs, template);
  finish("cp", ["-Rp", join(template, "data"), data], { ...programs.options, cwd: dirname(data) });
}

/** Makes the template in the first process that needs it; other processes wait. */
async function keep(programs: Programs, template: string): Promise<void> {
  const begun = `${template}-begun`;
  if (!isFirst(begun))
    return eventually("another process has made the files of PostgreSQL", () => existsSync(template));
  // Another process may have made it between the two checks.
  if (existsSync(template)) return;
  const { uid, gid } = programs.options;
  if (uid !== undefined && gid !== undefined) chownSync(begun, uid, gid);
  initialize(programs, join(begun, "data"));
  renameSync(begun, template);
}

function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function initialize({ initdb, options }: Programs, data: string): void {
  const words = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"];
  finish(initdb, ["--pgdata", data, ...words], { ...options, cwd: dirname(data) });
}

function finish(program: string, words: readonly string[], options: object): void {
  const { status, error, stderr } = spawnSync(program, words, { ...options, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`);
}
