/**
 * The files of a new PostgreSQL: of one run of the tests they are made once, and copied, which
 * takes a tenth of the time.
 */
import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { eventually } from "../eventually.ts";
import type { Programs } from "./postgres_programs.ts";

/**
 * Makes the folder `data`, as the user of the programs, who may write to the folder above. @throws
 * Error for a program that fails
 */
export async function newCluster(programs: Programs, data: string): Promise<void> {
  // Of `test/run.mjs`, and gone with it; what is started otherwise makes its own.
  const { TEST_RUN_FOLDER: run } = process.env;
  if (run === undefined) {
    initialize(programs, data);
    return;
  }
  const kept = join(run, "postgres");
  if (!existsSync(kept)) await keep(programs, kept);
  finish("cp", ["-Rp", join(kept, "data"), data], { ...programs.options, cwd: dirname(data) });
}

/** The first process makes it, and others wait. */
async function keep(programs: Programs, kept: string): Promise<void> {
  const begun = `${kept}-begun`;
  if (!isFirst(begun)) return eventually("the files of PostgreSQL are made", () => existsSync(kept));
  // It may have been made between the two looks.
  if (existsSync(kept)) return;
  const { uid, gid } = programs.options;
  if (uid !== undefined && gid !== undefined) chownSync(begun, uid, gid);
  initialize(programs, join(begun, "data"));
  renameSync(begun, kept);
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
