/** Makes the rules by which the kernel restricts the process of a sandboxed module. */
import { chmodSync, chownSync, existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ModuleRights, makeDataFolder } from "../module/rights.ts";
import { hasNamespaces, type SandboxPolicy, sandboxUser } from "../sandbox/index.ts";
import { packageFolder } from "../util/package.ts";
import type { SourceFile } from "./messages.ts";

/**
 * Parts of this package that its code needs: those that it has when it runs from source or built.
 */
const ownParts = ["package.json", "core", "modules", "dist", "config", "node_modules"];

/** The files that a policy is made for. */
export interface PolicyFiles {
  readonly source: SourceFile;
  /** The program of the process. */
  readonly program: string;
  /** The private folder with the sockets of the process. Its temporary folder is made in it. */
  readonly folder: string;
}

/**
 * Returns the policy of a module, and makes the folders that it writes: an empty temporary one, and
 * its data folder if that is granted. Both belong to the user of the process.
 */
export function makePolicy({ source, program, folder }: PolicyFiles, rights: ModuleRights): SandboxPolicy {
  const { read = [], write = [], run = [], env, addons = false, namespaces = "auto" } = rights.policy ?? {};
  const { limits } = rights.settings;
  const temporary = join(folder, "tmp");
  mkdirSync(temporary, { mode: 0o700 });
  const data = makeDataFolder(rights);
  const folders = data === undefined ? [] : [data];
  const isWithin = namespaces !== "off" && hasNamespaces();
  // In namespaces the folders above are others, which every user may pass.
  const isReached = isWithin || folders.every((each) => isPassable(dirname(each)));
  const user = [program, source.file].every(isOpen) && isReached ? "own" : "same";
  const id = sandboxUser(source.name, user);
  if (id !== undefined) {
    // The module's own user may pass through the folder of the host, and sees nothing else in it.
    chmodSync(folder, 0o711);
    for (const each of [temporary, ...folders]) chownSync(each, id, id);
  }
  return {
    read: existing([...read, ...ownParts.map((part) => join(packageFolder(), part))]),
    write: [temporary, ...existing(write)],
    run: existing(run),
    addons,
    // Without HOME the system would look for a user who may not exist.
    env: { HOME: temporary, ...env, TMPDIR: temporary },
    namespaces,
    user,
    ...(limits !== undefined && { rlimits: { openFiles: limits.open_files } }),
  };
}

/**
 * Returns the options of Node.js that the process starts with. Its code finds packages under the
 * same conditions as the host. One thread collects garbage while the code runs: four would cost
 * a small heap more time to coordinate than they save. `heap`: bytes that its heap may have.
 */
export function nodeOptions(heap: number): string[] {
  const conditions = process.execArgv.filter((option) => /^(?:-C|--conditions=)/.test(option));
  return [...conditions, "--v8-pool-size=1", `--max-old-space-size=${Math.ceil(heap / 2 ** 20)}`];
}

const OTHERS_READ = 0o004;
const OTHERS_PASS = 0o001;

/**
 * Whether every user of this machine can read a file. A module whose files only the user of the
 * server can read does not get a user of its own, which could not read them.
 */
const isOpen = (file: string): boolean => (statSync(file).mode & OTHERS_READ) !== 0 && isPassable(dirname(file));

/** Whether every user can pass through a folder and those above. */
function isPassable(folder: string): boolean {
  if ((statSync(folder).mode & OTHERS_PASS) === 0) return false;
  return folder === dirname(folder) || isPassable(dirname(folder));
}

const existing = (paths: readonly string[]): string[] => [
  ...new Set(paths.filter((path) => existsSync(path)).map((path) => realpathSync(path))),
];
