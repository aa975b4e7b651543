/** The whole engine. The build makes a script of its own of it, which is loaded when it is used. */
export { changesBetween, describeModule, type ModuleDescription, type VersionChange } from "./describe.ts";
export { PackageError, type PackageErrorCode } from "./errors.ts";
export { type FetchedModule, type FetchedVersion, fetchModule, type ModuleFetchOptions } from "./fetch/fetch_module.ts";
export { restoreModule } from "./fetch/restore_module.ts";
export {
  type Consent,
  folderOf,
  installedModule,
  installModule,
  pruneStore,
  removeModule,
  restoreModules,
  rollBackModule,
  verifyModules,
} from "./installed.ts";
export type { InstalledVersion, LockedModule, LockedModules, LockedPackage, VerifiedFact } from "./lockfile/format.ts";
export { readLockFile } from "./lockfile/lock_file.ts";
export { defaultLimits, type PackageSettings } from "./settings.ts";
export { moduleNameOf, type PackageSource, parseSource } from "./source.ts";
export type { TreeName } from "./store/package_store.ts";
export type { TreeFault } from "./store/tree.ts";
