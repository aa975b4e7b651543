import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { createRequire, findPackageJSON } from "node:module";
import { basename, dirname, extname, isAbsolute, join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { InstalledModule } from "../config/index.ts";
import type { ModuleDefinition } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { moduleExtensions, moduleName } from "../util/module_name.ts";
import { nearest } from "../util/nearest.ts";
import { bundledModules, packageVersion } from "../util/package.ts";

/** The location of a module's code. */
export interface ModuleSource {
  /** Without a leading `mod_`. */
  readonly name: string;
  /** The file that is imported; undefined for a module that was passed as a value. */
  readonly file: string | undefined;
  /** The folder that `module.get_directory()` returns. */
  readonly directory: string;
  /** The module's own folder; undefined for a single file, which shares its folder with others. */
  readonly root: string | undefined;
  /** The permissions in its package.json, as written there. */
  readonly permissions?: unknown;
  /** The definition of a module that was passed as a value. */
  readonly definition?: ModuleDefinition;
}

/** Returns true for an entry that is a path of a file or folder instead of a module name. */
export function isPath(entry: string): boolean {
  return isAbsolute(entry) || /^\.{1,2}([\\/]|$)/.test(entry);
}

/**
 * Finds a module by name: the folders of `plugin_paths` in order, the bundled modules, then an npm
 * package as seen from `directory`. Within a folder: `mod_x.ts` (.js, .mjs, .cjs), `mod_x/`,
 * `x/mod_x.ts`.
 * @throws {ModhostError} MODULE_NOT_FOUND, MODULE_INVALID
 */
export function locateModule(entry: string, pluginPaths: readonly string[], directory: string): ModuleSource {
  const name = moduleName(entry);
  const folders = [...new Set([...pluginPaths, bundledModules])];
  for (const folder of folders) {
    const found = inFolder(folder, name);
    if (found !== undefined) return found;
  }
  const packages = [...new Set([entry, `modhost-mod-${name}`, `mod_${name}`])];
  for (const id of packages) {
    const found = inPackages(id, directory);
    if (found !== undefined) return found;
  }
  const searched = [...folders, `the npm packages ${packages.join(", ")}`].join(", ");
  const like = nearest(name, folders.flatMap(listModules));
  const meant = like === undefined ? "" : ` (is ${like} meant?)`;
  throw new ModhostError("MODULE_NOT_FOUND", { name, searched, meant });
}

/**
 * Returns the module at a path: a file with one of the module extensions and any name, or a folder.
 * @throws {ModhostError} MODULE_NOT_FOUND, MODULE_INVALID
 */
export function locatePath(path: string): ModuleSource {
  const full = resolve(path);
  const name = moduleName(full);
  if (isFile(full)) {
    if (!moduleExtensions.includes(extname(full)))
      throw invalid(full, `a module is a folder or ends in ${moduleExtensions.join(", ")}`);
    return sourceOf(name, full);
  }
  const found = isFolder(full) ? ofFolder(name, full) : undefined;
  if (found !== undefined) return found;
  throw new ModhostError("MODULE_NOT_FOUND", { name, searched: full, meant: "" });
}

/** Folder below `data_path` with the packages of installed modules. */
const PACKAGES = "packages";

/**
 * Returns an installed module, whose package and those that it depends on are in
 * `packages/NAME/TREE/node_modules` below `data_path`.
 * @throws {ModhostError} MODULE_NOT_FETCHED, MODULE_INVALID
 */
export function locateInstalled(name: string, module: InstalledModule, dataPath: string): ModuleSource {
  const { package: id, version, tree } = module;
  const folder = join(dataPath, PACKAGES, name, tree);
  const file = join(folder, "node_modules", id, "package.json");
  if (!isFile(file)) throw new ModhostError("MODULE_NOT_FETCHED", { name, version, folder });
  return ofPackage(name, file);
}

/** Returns the names of the modules in a folder, sorted; empty for a folder that does not exist. */
export function listModules(folder: string): string[] {
  if (!isFolder(folder)) return [];
  const names = readdirSync(folder)
    .filter((entry) => !entry.startsWith(".") && !entry.endsWith(".d.ts"))
    .filter((entry) => moduleExtensions.includes(extname(entry)) === isFile(join(folder, entry)))
    .filter((entry) => entry.startsWith("mod_") || entryFile(join(folder, entry), [`mod_${entry}`]) !== undefined)
    .map(moduleName)
    .filter((name) => inFolder(folder, name) !== undefined);
  return [...new Set(names)].sort();
}

function inFolder(folder: string, name: string): ModuleSource | undefined {
  const loose = entryFile(folder, [`mod_${name}`]);
  if (loose !== undefined) return sourceOf(name, loose);
  const own = ofFolder(name, join(folder, `mod_${name}`));
  if (own !== undefined) return own;
  const nested = entryFile(join(folder, name), [`mod_${name}`]);
  return nested === undefined ? undefined : sourceOf(name, nested, join(folder, name));
}

/**
 * Returns the entry of a module's folder: the manifest's `modhost` key names it, or it is a `mod_x`
 * or index file, or the main file as in any package.
 */
function ofFolder(name: string, folder: string): ModuleSource | undefined {
  if (!isFolder(folder)) return undefined;
  const manifest = readManifest(join(folder, "package.json"));
  const named = manifest?.modhost?.entry;
  if (named !== undefined) return sourceOf(name, join(folder, named), folder, manifest);
  const found = entryFile(folder, [`mod_${name}`, "index"]) ?? mainFile(folder, manifest);
  return found === undefined ? undefined : sourceOf(name, found, folder, manifest);
}

interface Manifest {
  readonly name?: string;
  readonly main?: string;
  readonly exports?: unknown;
  readonly modhost?: {
    readonly kind?: string;
    readonly entry?: string;
    readonly host?: string;
    readonly permissions?: unknown;
  };
}

function inPackages(id: string, directory: string): ModuleSource | undefined {
  let file: string | undefined;
  try {
    file = findPackageJSON(id, pathToFileURL(join(directory, "modhost.config.js")));
  } catch {
    return undefined; // It is not installed, or no package can have this name.
  }
  if (file === undefined || readManifest(file)?.modhost === undefined) return undefined;
  return ofPackage(moduleName(id), file);
}

/** Returns the module in a package with this manifest. */
function ofPackage(name: string, file: string): ModuleSource {
  const manifest = readManifest(file);
  if (manifest?.modhost === undefined) throw invalid(file, "it has no key modhost, so it is no module");
  if (typeof manifest.modhost !== "object" || manifest.modhost === null) {
    throw invalid(file, 'its key modhost must be an object: { "kind": "module", "entry": "./index.js" }');
  }
  const { kind = "module", entry, host } = manifest.modhost;
  if (kind !== "module") throw invalid(file, `it is a modhost ${kind}, not a module`);
  const version = packageVersion();
  if (host !== undefined && !satisfies(version, host)) {
    throw invalid(file, `it requires modhost ${host}, and this is ${version}: install a version of it that matches`);
  }
  const folder = dirname(file);
  const main = entry === undefined ? mainFile(folder, manifest) : join(folder, entry);
  if (main === undefined) throw invalid(file, "its key modhost names no entry: set modhost.entry to its file");
  return sourceOf(name, main, folder, manifest);
}

/** Loads semver only when the first module names a range. */
function satisfies(version: string, range: string): boolean {
  const semver: typeof import("semver") = createRequire(import.meta.url)("semver");
  return semver.satisfies(version, range, { includePrerelease: true });
}

function sourceOf(
  name: string,
  path: string,
  root?: string,
  manifest = root === undefined ? undefined : readManifest(join(root, "package.json")),
): ModuleSource {
  if (name === "") throw invalid(path, "its name is empty: name a module by mod_NAME");
  if (!isFile(path))
    throw invalid(path, "the file does not exist: build the module, or fix the entry in its package.json");
  const file = realpathSync(path);
  if (file.endsWith(".ts") && file.includes(`${sep}node_modules${sep}`)) {
    throw invalid(
      file,
      "Node.js runs no TypeScript below node_modules: publish its JavaScript, and name that as its entry",
    );
  }
  const permissions = manifest?.modhost?.permissions;
  return {
    name,
    file,
    directory: dirname(file),
    root: root && realpathSync(root),
    ...(permissions === undefined ? {} : { permissions }),
  };
}

function mainFile(folder: string, manifest: Manifest | undefined): string | undefined {
  const target = exportOf(manifest?.exports) ?? manifest?.main;
  if (target === undefined) return entryFile(folder, ["index"]);
  const path = join(folder, target);
  return isFile(path) ? path : entryFile(dirname(path), [basename(path)]);
}

/** Returns the target that the package has for an import of its name. */
function exportOf(exports: unknown): string | undefined {
  if (typeof exports === "string") return exports;
  if (typeof exports !== "object" || exports === null) return undefined;
  const targets = exports as Record<string, unknown>;
  return ["." in targets ? "." : "import", "node", "default", "require"]
    .map((condition) => exportOf(targets[condition]))
    .find((target) => target !== undefined);
}

function entryFile(folder: string, stems: readonly string[]): string | undefined {
  return stems.flatMap((stem) => moduleExtensions.map((extension) => join(folder, stem + extension))).find(isFile);
}

function readManifest(file: string): Manifest | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Manifest;
  } catch (error) {
    throw invalid(file, reasonOf(error));
  }
}

function invalid(file: string, reason: string): ModhostError {
  return new ModhostError("MODULE_INVALID", { file, reason });
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
