/**
 * Reads `modules.lock`, a file in the folder of the config file that names the modules that were
 * installed.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { settingsProblems } from "../permissions/index.ts";
import type { ModulePermissions, ModuleRun } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { moduleName } from "../util/module_name.ts";
import { convertInto, isObject, type Problem, show } from "./convert.ts";
import { coreOptions } from "./options.ts";

/** The fields of an installed module that the host needs; installers write more. */
export interface InstalledModule {
  /** The name of its npm package. */
  readonly package: string;
  readonly version: string;
  /** The hash of its files, which is the name of the folder that has them. */
  readonly tree: string;
  readonly run: ModuleRun;
  /** The permissions that the operator has agreed to. */
  readonly grant: ModulePermissions;
}

/** Installed modules by their names. */
export type InstalledModules = ReadonlyMap<string, InstalledModule>;

/** The version of the format. */
const FORMAT = 1;
const runs: readonly unknown[] = ["trusted", "isolated", "sandboxed"] satisfies ModuleRun[];
const packageName = /^(?:@[a-z\d~-][a-z\d._~-]*\/)?[a-z\d~-][a-z\d._~-]*$/i;

/** Returns the path of the lock file for a configuration in this folder. */
export const modulesLockIn = (directory: string): string => join(directory, "modules.lock");

/**
 * Reads the lock file in a folder; without one, no module is installed. `text` replaces its
 * content.
 * @throws {ModhostError} MODULES_LOCK_INVALID
 */
export async function readModulesLock(directory: string, text?: string): Promise<InstalledModules> {
  const path = modulesLockIn(directory);
  let content = text;
  try {
    content ??= await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw invalid(path, `it cannot be read: ${reasonOf(error)}`);
  }
  return parseModulesLock(content, path);
}

/** @throws {ModhostError} MODULES_LOCK_INVALID naming the module and the field */
export function parseModulesLock(text: string, path: string): InstalledModules {
  let lock: unknown;
  try {
    lock = JSON.parse(text);
  } catch (error) {
    throw invalid(path, reasonOf(error));
  }
  if (!isObject(lock)) throw invalid(path, "it must be an object with version and modules");
  if (lock.version !== FORMAT) {
    throw invalid(path, `its version is ${JSON.stringify(lock.version)}, and this modhost reads version ${FORMAT}`);
  }
  if (!isObject(lock.modules)) throw invalid(path, "its field modules must be an object");
  return new Map(
    Object.entries(lock.modules).map(([name, entry]) => {
      const fault = faultOf(name, entry);
      if (fault !== undefined) throw invalid(path, `modules.${name}${fault}`);
      return [name, entry as unknown as InstalledModule];
    }),
  );
}

/** Returns what is wrong with an entry, to be appended to its path. */
function faultOf(name: string, entry: unknown): string | undefined {
  if (moduleName(name) !== name || name === "") return " has a name that no module can have";
  if (!isObject(entry)) return " must be an object";
  if (typeof entry.package !== "string" || !packageName.test(entry.package))
    return ".package must be the name of an npm package";
  if (typeof entry.version !== "string") return ".version must be a text";
  if (typeof entry.tree !== "string" || !/^[\da-f]{32,128}$/.test(entry.tree))
    return ".tree must be a hash in hexadecimal digits";
  if (!runs.includes(entry.run)) return `.run must be one of ${runs.join(", ")}`;
  if (!isObject(entry.grant)) return ".grant must be an object with permissions";
  const problems: Problem[] = [];
  const settings = convertInto(problems, coreOptions.modules, "modules", { [name]: { grant: entry.grant } }, "/");
  const [problem] = problems.length > 0 ? problems : settingsProblems(settings);
  return problem && `${problem.path.slice(`modules.${name}`.length)} is ${show(problem.value)}, but ${problem.allowed}`;
}

const invalid = (path: string, reason: string) => new ModhostError("MODULES_LOCK_INVALID", { path, reason });
