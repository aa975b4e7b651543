/** Derives how a module runs and what it may do from the configuration. */
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Config } from "../config/index.ts";
import {
  DATA,
  type GuardedPath,
  type ModuleSettings,
  type OwnFolders,
  type PermissionLedger,
  type Policy,
  type PolicyFacts,
  permissionStates,
  policyOf,
  realPath,
  settingsOf,
} from "../permissions/index.ts";
import type { ModulePermissions, ModuleRun, PermissionState } from "../types.ts";
import { bundledModules, packageFolder } from "../util/package.ts";
import type { ModuleSource } from "./locate.ts";

/** The rights of one module according to the configuration. */
export interface ModuleRights {
  readonly run: ModuleRun;
  readonly settings: ModuleSettings;
  readonly folders: OwnFolders;
  /** For a sandboxed module: what the kernel lets its process do. */
  readonly policy: Policy | undefined;
}

/**
 * Folder below `data_path` with the data folders of sandboxed modules. It is not `modules`, because
 * the default configuration looks for modules there.
 */
const DATA_FOLDERS = "module_data";

/**
 * Returns the parts of this package that its code needs, those that it has when it runs from source
 * or built. Every sandboxed module can read them.
 */
export function serverParts(): string[] {
  const parts = ["package.json", "core", "modules", "dist", "config", "node_modules"];
  return parts.map((part) => join(packageFolder(), part));
}

/** Returns the settings of a module. It has none if the option `modules` is not valid. */
export function moduleSettings(config: Config, name: string): ModuleSettings {
  return settingsOf(config.value("modules"), name);
}

/** Returns the folders that relative paths of a module's permissions start from. */
function ownFolders(config: Config, { name, root, directory }: ModuleSource): OwnFolders {
  return { folder: root ?? directory, dataFolder: join(String(config.value("data_path")), DATA_FOLDERS, name) };
}

/**
 * Returns the rights of a module that runs in this way.
 * @throws {ModhostError} OPTION_INVALID for a grant that contains what belongs to the server or to
 * other modules
 */
export function rightsOf(config: Config, source: ModuleSource, run: ModuleRun): ModuleRights {
  const settings = moduleSettings(config, source.name);
  const folders = ownFolders(config, source);
  const { file } = source;
  const isRestricted = run === "sandboxed" && file !== undefined;
  const policy = isRestricted ? policyOf(settings, factsOf(config, { ...source, file }, folders)) : undefined;
  return { run, settings, folders, policy };
}

function factsOf(config: Config, source: ModuleSource & { readonly file: string }, folders: OwnFolders): PolicyFacts {
  const { name, file, root } = source;
  const plugins = (config.value("plugin_paths") ?? []) as readonly string[];
  const commands = join(dirname(file), "cli");
  return {
    ...folders,
    name,
    file,
    root,
    guarded: guardedPaths(config),
    code: [
      packageFolder(),
      bundledModules,
      dirname(realPath(process.execPath)),
      ...plugins.map((path) => resolve(config.directory, path)),
      // The command line runs these with the rights of the operator.
      ...(root === undefined ? [] : [commands, join(root, "package.json")]),
    ],
    packages: packageFolders(root ?? dirname(file)),
    server: serverParts(),
    env: process.env,
  };
}

/** Returns the files and folders of the server, the most specific first. */
function guardedPaths(config: Config): GuardedPath[] {
  const data = String(config.value("data_path"));
  const socket = config.written("admin_socket");
  const log = config.value("log_file");
  const certificates = Object.values((config.value("certificates") ?? {}) as Record<string, { readonly key?: string }>);
  return [
    ...(config.file === undefined ? [] : copiesOf(config.file)).map((path) => ({ path, what: "the config file" })),
    ...(config.lockFile === undefined ? [] : [{ path: config.lockFile, what: "the list of installed modules" }]),
    { path: join(data, "tokens.json"), what: "the token store" },
    {
      path: typeof socket === "string" ? resolve(config.directory, socket) : join(data, "admin.sock"),
      what: "the admin socket",
    },
    ...(typeof log === "string" ? [{ path: log, what: "the log" }] : []),
    ...certificates.flatMap(({ key }) => (key === undefined ? [] : [{ path: key, what: "the key of a certificate" }])),
    { path: data, what: "the data of the server and of other modules" },
    { path: tmpdir(), what: "the temporary files of other programs", isOpenBelow: true },
  ];
}

/** Returns the config file, and the previous texts that an edit saves next to it. */
const copiesOf = (file: string): string[] => ["", ".1", ".2", ".3"].map((end) => file + end);

/** Returns the folders of packages that code in a folder can import, the nearest first. */
function packageFolders(folder: string): string[] {
  const found: string[] = [];
  for (let at = folder; ; at = dirname(at)) {
    const packages = join(at, "node_modules");
    if (existsSync(packages)) found.push(packages);
    if (at === dirname(at)) return found;
  }
}

/** The code of a module, as far as its permissions need it. */
export interface DeclaredRights {
  readonly source: ModuleSource;
  readonly rights?: ModuleRights;
  /** If not set, what the module declared when it was last evaluated. */
  readonly permissions?: ModulePermissions;
}

/** Returns the permissions of a module, with their uses. */
export function permissionsOf(
  { source, rights, permissions }: DeclaredRights,
  ledger: PermissionLedger,
): PermissionState[] {
  if (rights === undefined) return [];
  const { folders, run, settings } = rights;
  const { name: module } = source;
  return permissionStates({
    module,
    folders,
    declared: permissions ?? ledger.declaredBy(module),
    granted: grantedTo(rights),
    run,
    isAudited: settings.audit,
    uses: ledger.of(module),
  });
}

/**
 * Returns the permissions that a module is granted. Undefined for a trusted or isolated module that
 * has no grant: nothing is refused to it.
 */
export function grantedTo({ run, settings }: ModuleRights): ModulePermissions | undefined {
  return run === "sandboxed" ? (settings.grant ?? {}) : settings.grant;
}

/** Returns the data folder of a module; undefined if it may not write there. */
export function dataFolderOf({ folders, settings }: ModuleRights): string | undefined {
  // With an audit nothing is refused, so that the folder must exist.
  return settings.audit || settings.grant?.write?.includes(DATA) === true ? folders.dataFolder : undefined;
}
