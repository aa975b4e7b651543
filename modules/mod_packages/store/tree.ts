/** Lists the files of a tree with their checksums, and compares a tree with such a list. */
import { createHash } from "node:crypto";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { eachInParallel } from "../parallel.ts";

/** A file of a tree, by its path below the tree, with slashes. */
export interface TreeFile {
  readonly path: string;
  readonly sha256: string;
  readonly isProgram: boolean;
}

/** A difference between a tree on disk and its list. */
export interface TreeFault {
  readonly path: string;
  readonly fault: "changed" | "missing" | "added";
}

const MAY_RUN = 0o111;
/** Files that are read at the same time. */
const PARALLEL = 8;

/** Returns the files below a folder, sorted by path. */
export async function filesIn(folder: string): Promise<TreeFile[]> {
  const paths = await pathsIn(folder, "");
  return await eachInParallel(paths.sort(), PARALLEL, async (path) => {
    const file = join(folder, path);
    const found = await lstat(file);
    // A link has no checksum, because it leads out of the tree.
    const sha256 = found.isFile() ? digestOf(await readFile(file)) : "not a regular file".padEnd(64, ".");
    return { path, sha256, isProgram: (found.mode & MAY_RUN) !== 0 };
  });
}

/** Returns the list as text: a line for each file. Paths contain no line breaks. */
export function listText(files: readonly TreeFile[]): string {
  return files.map(({ path, sha256, isProgram }) => `${sha256} ${isProgram ? "x" : "-"} ${path}\n`).join("");
}

/** Returns the name of a tree: the hash of its list. */
export const treeHash = (list: string): string => digestOf(list);

const digestOf = (content: string | Buffer): string => createHash("sha256").update(content).digest("hex");

/** Compares a folder with the list of its files. */
export async function faultsOf(folder: string, list: string): Promise<TreeFault[]> {
  const expected = new Map(list.split("\n").map((line) => [line.slice(67), line]));
  expected.delete("");
  const faults: TreeFault[] = [];
  for (const file of await filesIn(folder)) {
    const line = expected.get(file.path);
    expected.delete(file.path);
    if (line === undefined) faults.push({ path: file.path, fault: "added" });
    else if (`${line}\n` !== listText([file])) faults.push({ path: file.path, fault: "changed" });
  }
  const missing = [...expected.keys()].map((path) => ({ path, fault: "missing" }) as const);
  return [...faults, ...missing].sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** Links and other special files are listed as well: no package contains any. */
async function pathsIn(folder: string, path: string): Promise<string[]> {
  const entries = await readdir(join(folder, path), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const found = entries.map(async (entry) => {
    const at = path === "" ? entry.name : `${path}/${entry.name}`;
    return entry.isDirectory() ? await pathsIn(folder, at) : [at];
  });
  return (await Promise.all(found)).flat();
}
