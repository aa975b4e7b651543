/**
 * Namespaces, made by bubblewrap: the process sees no other processes, no network, and of the file
 * system only what it may read. It is started before the launcher, because Landlock refuses mounts.
 */
import { lstatSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { projectFolder } from "../util/package.ts";
import type { FileRule } from "./kernel/landlock.ts";
import { foldersOfLibraries } from "./node_needs.ts";

export const BUBBLEWRAP = "bwrap";

const unshared = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"];

/** Folders that a new system has of its own. */
const provided = /^\/(?:proc|dev|sys)(?:\/|$)/;

/** Returns the words in front of the launcher. `writable`: folders beyond the rules. */
export function bubblewrap(
  rules: readonly FileRule[],
  launcher: string,
  writable: readonly string[],
): readonly string[] {
  const mounts = new Map<string, "--ro-bind-try" | "--bind">();
  // The launcher reads its own files before it restricts itself.
  const own = projectFolder(dirname(launcher));
  const readable = [...foldersOfLibraries(), dirname(launcher), ...(own === undefined ? [] : [`${own}/package.json`])];
  for (const path of readable) mounts.set(path, "--ro-bind-try");
  for (const [path, right] of rules) {
    if (!provided.test(path)) mounts.set(path, right === "write" ? "--bind" : "--ro-bind-try");
  }
  for (const path of writable) mounts.set(path, "--bind");
  // A folder comes before what is below it, which is mounted again only to become writable.
  const sorted = [...mounts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const needed = sorted.filter(([path, how]) => !isCovered(path, how, mounts));
  return [
    BUBBLEWRAP,
    ...unshared,
    "--die-with-parent",
    "--new-session",
    "--hostname",
    "sandbox",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    ...parentsOf(needed.map(([path]) => path)).flatMap((path) => ["--dir", path]),
    ...needed.flatMap(([path, how]) => mount(path, how)),
    "--remount-ro",
    "/",
    "--chdir",
    "/",
    "--",
  ];
}

/** Returns whether a folder above is mounted in the same way, or is writable. */
function isCovered(path: string, how: string, mounts: ReadonlyMap<string, string>): boolean {
  for (let above = dirname(path); above !== "/"; above = dirname(above)) {
    const its = mounts.get(above);
    if (its === how || its === "--bind") return true;
  }
  return false;
}

/** Returns the folders above, which bubblewrap would make for its own user only. */
function parentsOf(paths: readonly string[]): readonly string[] {
  const parents = new Set<string>();
  for (const path of paths) for (let above = dirname(path); above !== "/"; above = dirname(above)) parents.add(above);
  for (const path of paths) parents.delete(path);
  // Folders below a mounted one exist already.
  const isInside = (path: string) => paths.some((other) => path.startsWith(`${other}/`));
  return [...parents].filter((path) => !isInside(path)).toSorted();
}

/**
 * On many systems /lib leads to /usr/lib. Such a link is made again, because its target is mounted
 * by itself.
 */
function mount(path: string, how: string): readonly string[] {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink && dirname(path) === "/" ? ["--symlink", readlinkSync(path), path] : [how, path, path];
}

const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
/**
 * The launcher: TypeScript in the source tree, JavaScript in the package. Resolved like an import,
 * so that a hook of tests can name the built one.
 */
export const launcherFile = fileURLToPath(
  import.meta.resolve(new URL(`./launcher.${extension}`, import.meta.url).href),
);
