/** Makes the tree of an installed version again, as the lock file states it. */
import { mkdir, rename } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { TreeBudget } from "../archive/unpack.ts";
import { PackageError, packageError } from "../errors.ts";
import type { InstalledVersion, LockedPackage } from "../lockfile/format.ts";
import { eachInParallel } from "../parallel.ts";
import { Registries } from "../registry/registries.ts";
import type { PackageSettings } from "../settings.ts";
import { PackageStore, packagePath, type Staging } from "../store/package_store.ts";
import { fetchArchive, PARALLEL_ARCHIVES } from "./archives.ts";

/**
 * Fetches the archives that the lock file names, unless the store has the tree. The checksums and
 * the hash of the tree decide; no version is looked up.
 * @returns whether anything was fetched
 * @throws {PackageError} TREE_OTHER if other files come out, SOURCE_CHANGED for a local source
 */
export async function restoreModule(
  module: string,
  version: InstalledVersion,
  settings: PackageSettings,
): Promise<boolean> {
  const store = new PackageStore(settings.store);
  if ((await store.faults({ module, tree: version.tree })).length === 0) return false;
  return await store.change(async (staging) => {
    const registries = await Registries.open(settings, join(staging.scratch, "cache"));
    try {
      await unpackAll(version, staging, registries, settings);
    } catch (error) {
      throw packageError(error, version.package, registries.mask);
    }
    await store.add(module, staging, version.tree);
    return true;
  });
}

async function unpackAll(
  version: InstalledVersion,
  staging: Staging,
  registries: Registries,
  settings: PackageSettings,
): Promise<void> {
  const own = packagePath(version.package);
  const root = join(staging.scratch, "package");
  const budget = new TreeBudget(settings.limits, version.package);
  await eachInParallel(Object.entries(version.packages), PARALLEL_ARCHIVES, async ([path, locked]) => {
    const location = path === own ? "" : path.slice(own.length + 1);
    const wanted = { ...locked, name: nameIn(path, locked), location };
    if (!locked.resolved.startsWith("file:")) return await fetchArchive(wanted, { root, budget, registries });
    const file = resolve(settings.folder, locked.resolved.slice("file:".length));
    const unpacked = await fetchArchive({ ...wanted, resolved: `file:${file}` }, { root, budget, registries }).catch(
      (error: unknown) => {
        if (error instanceof PackageError && error.code === "INTEGRITY") throw changed(version);
        throw error;
      },
    );
    if (unpacked.integrity !== locked.integrity) throw changed(version);
    return unpacked;
  });
  await mkdir(dirname(join(staging.tree, own)), { recursive: true });
  await rename(root, join(staging.tree, own));
}

const changed = ({ source, package: name, version }: InstalledVersion) =>
  new PackageError("SOURCE_CHANGED", { source, package: name, version });

function nameIn(path: string, { name }: LockedPackage): string {
  const at = path.lastIndexOf("node_modules/") + "node_modules/".length;
  return name ?? path.slice(at);
}
