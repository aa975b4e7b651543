/** Changes and checks which modules are installed, as the lock file states them. */
import { PackageError } from "./errors.ts";
import type { FetchedModule } from "./fetch/fetch_module.ts";
import { restoreModule } from "./fetch/restore_module.ts";
import type { InstalledVersion, LockedModule, LockedModules } from "./lockfile/format.ts";
import { lockFileText, readLockFile, writeLockFile } from "./lockfile/lock_file.ts";
import type { PackageSettings } from "./settings.ts";
import { PackageStore, type TreeName } from "./store/package_store.ts";
import type { TreeFault } from "./store/tree.ts";

/** The permissions that the operator grants, and how the module runs. */
export type Consent = Pick<InstalledVersion, "grant" | "run">;

/**
 * Installs a fetched module, or updates it. The version that was installed before becomes the
 * previous one.
 * @throws {PackageError} TREE_MISSING if the store was pruned since it was fetched, NAME_TAKEN
 */
export async function installModule(
  { module, version }: FetchedModule,
  consent: Consent,
  settings: PackageSettings,
): Promise<LockedModule> {
  const store = new PackageStore(settings.store);
  return await changeLockFile(settings, async (modules) => {
    const { previous, ...current } = modules[module] ?? {};
    const installed = new Date(settings.now()).toISOString();
    const name = version.package;
    const other = modules[module]?.package ?? name;
    if (other !== name) throw new PackageError("NAME_TAKEN", { package: name, module, other });
    await assertStored(store, module, version);
    const isSame = modules[module]?.tree === version.tree;
    const before = isSame ? previous : modules[module] && (current as InstalledVersion);
    const next = { ...version, ...consent, installed, ...(before && { previous: before }) };
    return [next, { ...modules, [module]: next }];
  });
}

/**
 * Exchanges the current and the previous version, so that a second call undoes the first. The
 * files of the previous version are fetched again if they are missing.
 * @throws {PackageError} MODULE_UNKNOWN, NO_PREVIOUS
 */
export async function rollBackModule(module: string, settings: PackageSettings): Promise<LockedModule> {
  const wanted = (await installedModule(module, settings)).previous;
  if (wanted === undefined) throw new PackageError("NO_PREVIOUS", { module });
  await restoreModule(module, wanted, settings);
  return await changeLockFile(settings, async (modules) => {
    const { previous, ...current } = known(modules, module, settings);
    if (previous === undefined) throw new PackageError("NO_PREVIOUS", { module });
    await assertStored(new PackageStore(settings.store), module, previous);
    const next = { ...previous, previous: current };
    return [next, { ...modules, [module]: next }];
  });
}

/** Removes a module from the lock file. Its files stay in the store until it is pruned. */
export async function removeModule(module: string, settings: PackageSettings): Promise<LockedModule> {
  return await changeLockFile(settings, async (modules) => {
    const removed = known(modules, module, settings);
    return [removed, Object.fromEntries(Object.entries(modules).filter(([name]) => name !== module))];
  });
}

/**
 * Returns the installed module.
 * @throws {PackageError} MODULE_UNKNOWN
 */
export async function installedModule(module: string, settings: PackageSettings): Promise<LockedModule> {
  return known(await readLockFile(settings.lockFile), module, settings);
}

/** Returns the folder from which an installed module is loaded. */
export function folderOf(module: string, { tree }: InstalledVersion, settings: PackageSettings): string {
  return new PackageStore(settings.store).pathOf({ module, tree });
}

/** Compares all installed modules with the files that were installed; by module. */
export async function verifyModules(settings: PackageSettings): Promise<Record<string, TreeFault[]>> {
  const store = new PackageStore(settings.store);
  const modules = await readLockFile(settings.lockFile);
  const found = Object.entries(modules).map(async ([module, { tree }]) => {
    return [module, await store.faults({ module, tree })] as const;
  });
  return Object.fromEntries(await Promise.all(found));
}

/** Fetches all installed modules whose files are missing or damaged; returns their names. */
export async function restoreModules(settings: PackageSettings): Promise<string[]> {
  const restored: string[] = [];
  const modules = await readLockFile(settings.lockFile);
  for (const [module, version] of Object.entries(modules))
    if (await restoreModule(module, version, settings)) restored.push(module);
  return restored;
}

/** Removes the files of versions that the lock file names neither as current nor as previous. */
export async function pruneStore(settings: PackageSettings): Promise<TreeName[]> {
  const store = new PackageStore(settings.store);
  return await store.change(async () => {
    const modules = await readLockFile(settings.lockFile);
    const used = Object.entries(modules).flatMap(([module, { tree, previous }]) => {
      return [tree, previous?.tree].flatMap((each) => (each === undefined ? [] : [{ module, tree: each }]));
    });
    return await store.prune(used);
  });
}

function known(modules: LockedModules, module: string, { lockFile }: PackageSettings): LockedModule {
  const found = Object.hasOwn(modules, module) ? modules[module] : undefined;
  if (found === undefined) throw new PackageError("MODULE_UNKNOWN", { module, file: lockFile });
  return found;
}

async function assertStored(store: PackageStore, module: string, { tree, version }: { tree: string; version: string }) {
  if (await store.has({ module, tree })) return;
  throw new PackageError("TREE_MISSING", { module, version, path: store.pathOf({ module, tree }) });
}

/** Reads the lock file, and writes it with a change; one process at a time does. */
async function changeLockFile<T>(
  settings: PackageSettings,
  change: (modules: LockedModules) => Promise<readonly [T, LockedModules]>,
): Promise<T> {
  return await new PackageStore(settings.store).change(async () => {
    const modules = await readLockFile(settings.lockFile);
    const [result, changed] = await change(modules);
    const { saveLock = (text) => writeLockFile(settings.lockFile, text) } = settings;
    await saveLock(lockFileText(changed));
    return result;
  });
}
