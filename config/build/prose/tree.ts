/**
 * The files and commits that are checked. A folder without git, such as an unpacked archive, works,
 * too.
 */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, statSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";

/** Commits before this time were made without the rule. */
const SUBJECTS_SINCE = "2026-11-29T12:00:00Z";

/** Recorded material, and sources that are wrong on purpose. */
const skipped = /^(?:test\/fixtures|test\/contract\/rules\/broken|docs\/images)\//;
const checked = /\.(?:ts|mjs|cjs|js|md)$/;

const git = (root: string, ...args: readonly string[]): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 });

const hasGit = (root: string): boolean => existsSync(join(root, ".git"));

/**
 * Lists the sources and Markdown files below some paths, or all of them: those that git tracks, or,
 * without a repository, those that exist. Paths of the result are relative to `root`, with slashes.
 */
export function listFiles(root: string, paths: readonly string[]): string[] {
  const below = paths.map((path) => relative(root, resolve(path)).replaceAll(sep, "/"));
  const files = hasGit(root)
    ? git(root, "ls-files", "-z", "--", ...below.map((path) => (path === "" ? "." : path))).split("\0")
    : findFiles(root, below);
  return files.filter((path) => checked.test(path) && !skipped.test(path) && existsSync(join(root, path)));
}

function findFiles(root: string, below: readonly string[]): string[] {
  const patterns = (below.length === 0 ? [""] : below).map((path) =>
    statSync(join(root, path)).isFile() ? path : `${path === "" ? "" : `${path}/`}**/*.{ts,mjs,cjs,js,md}`,
  );
  const files = globSync(patterns, { cwd: root, exclude: ["**/node_modules", "data", "dist", "dist-*"] });
  return files.map((path) => path.replaceAll(sep, "/")).sort();
}

/**
 * Subjects of the commits since the rule exists: none without a repository or its whole history.
 */
export function commitSubjects(root: string): string[] {
  if (!hasGit(root) || git(root, "rev-parse", "--is-shallow-repository").trim() === "true") return [];
  return git(root, "log", "--no-merges", "--format=%s", `--since=${SUBJECTS_SINCE}`).split("\n");
}
