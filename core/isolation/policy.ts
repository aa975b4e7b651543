/** Makes the rules by which the kernel restricts the process of a sandboxed module. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { SandboxPolicy } from "../sandbox/index.ts";
import { packageFolder } from "../util/package.ts";
import type { SourceFile } from "./messages.ts";
import type { ModuleRights } from "./rights.ts";

/**
 * Parts of this package that its code needs: those that it has when it runs from source or built.
 */
const ownParts = ["package.json", "core", "modules", "dist", "config", "node_modules"];

/**
 * Returns the policy of a module. It reads its own folder and its packages, and has a temporary
 * folder. A module of a single file shares its folder with others, so it reads that file alone.
 */
export function policyOf(source: SourceFile, rights: ModuleRights, temporary: string, program: string): SandboxPolicy {
  const { file, directory, root } = source;
  const within = (path: string) => resolve(root ?? directory, path);
  const own = ownParts.map((part) => join(packageFolder(), part));
  const read = [root ?? file, ...packagesOf(root ?? directory), ...own, ...rights.read.map(within)];
  const granted = rights.env.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    read: realPaths(read),
    write: [temporary, ...realPaths(rights.write.map(within))],
    run: realPaths(rights.run),
    addons: rights.addons,
    // Without HOME the system would look for a user who may not exist.
    env: { HOME: temporary, ...Object.fromEntries(granted), TMPDIR: temporary },
    namespaces: rights.namespaces,
    user: [program, file].every((path) => isOpen(path)) ? "own" : "same",
  };
}

/**
 * Returns the options of Node.js that the process starts with. Its code finds packages under the
 * same conditions as the host. `heap`: bytes that its heap may have.
 */
export function nodeOptions(heap: number): string[] {
  const conditions = process.execArgv.filter((option) => /^(?:-C|--conditions=)/.test(option));
  return [...conditions, `--max-old-space-size=${Math.ceil(heap / 2 ** 20)}`];
}

/** Returns the folders of packages that code in this folder can import from. */
function packagesOf(folder: string): string[] {
  const found = [join(folder, "node_modules")];
  for (let at = folder; at !== dirname(at); at = dirname(at)) found.push(join(dirname(at), "node_modules"));
  return found;
}

const OTHERS_READ = 0o004;
const OTHERS_PASS = 0o001;

/**
 * Whether every user of this machine can read a file. A module whose files only the user of the
 * server can read does not get a user of its own, which could not read them.
 */
function isOpen(file: string): boolean {
  if ((statSync(file).mode & OTHERS_READ) === 0) return false;
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & OTHERS_PASS) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

const realPaths = (paths: readonly string[]): string[] => [
  ...new Set(paths.filter((path) => existsSync(path)).map((path) => realpathSync(path))),
];
