/** Fetches a module with its dependencies into the store. It is not installed by that. */
import { mkdir, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { checkModule, licenseText, type ModuleFacts } from "../archive/check_module.ts";
import type { UnpackedManifest } from "../archive/read_manifest.ts";
import { TreeBudget } from "../archive/unpack.ts";
import { PackageError, packageError } from "../errors.ts";
import {
  type InstalledVersion,
  type LockedModules,
  type LockedPackage,
  moduleName,
  packageName,
} from "../lockfile/format.ts";
import { readLockFile } from "../lockfile/lock_file.ts";
import { eachInParallel } from "../parallel.ts";
import { dependenciesOf } from "../registry/dependencies.ts";
import { semver } from "../registry/libraries.ts";
import { lookUp } from "../registry/look_up.ts";
import { Registries } from "../registry/registries.ts";
import { type VerifiedVersion, verifyVersion } from "../registry/verify.ts";
import type { PackageSettings } from "../settings.ts";
import { moduleNameOf, type PackageSource, parseSource, sourceText } from "../source.ts";
import { PackageStore, packagePath, type Staging } from "../store/package_store.ts";
import { assertNoScripts, assertSame, fetchArchive, PARALLEL_ARCHIVES, type WantedArchive } from "./archives.ts";

/** A version that the store has, before the operator consents to it. */
export type FetchedVersion = Omit<InstalledVersion, "grant" | "run" | "installed">;

export interface FetchedModule {
  /** The name of the module. */
  readonly module: string;
  readonly version: FetchedVersion;
  readonly facts: ModuleFacts;
  /** Number and total size of the files, dependencies included. */
  readonly files: number;
  readonly bytes: number;
  /** Things that an operator should know before consent, as sentences. */
  readonly warnings: readonly string[];
}

export interface ModuleFetchOptions {
  /** Whether the version may be lower than the installed one. */
  readonly allowLower?: boolean;
}

/**
 * Fetches and checks a module, and adds it to the store. Without an installation it stays there
 * until the store is pruned. After an error nothing is left.
 * @param text see `parseSource`
 * @throws {PackageError}
 */
export async function fetchModule(
  text: string,
  settings: PackageSettings,
  options: ModuleFetchOptions = {},
): Promise<FetchedModule> {
  const source = await parseSource(text, settings.folder);
  const locked = await readLockFile(settings.lockFile);
  const store = new PackageStore(settings.store);
  return await store.change(async (staging) => {
    const registries = await Registries.open(settings, join(staging.scratch, "cache"));
    try {
      return await new Fetch(source, staging, registries, settings).run(store, locked, options);
    } catch (error) {
      throw packageError(error, text, registries.mask);
    }
  });
}

/** One run of `fetchModule`. */
class Fetch {
  readonly #source: PackageSource;
  readonly #staging: Staging;
  readonly #registries: Registries;
  readonly #settings: PackageSettings;
  /** Folder of the module's package. */
  readonly #root: string;
  readonly #warnings: string[] = [];

  constructor(source: PackageSource, staging: Staging, registries: Registries, settings: PackageSettings) {
    this.#source = source;
    this.#staging = staging;
    this.#registries = registries;
    this.#settings = settings;
    this.#root = join(staging.scratch, "package");
  }

  async run(
    store: PackageStore,
    locked: LockedModules,
    { allowLower = false }: ModuleFetchOptions,
  ): Promise<FetchedModule> {
    const source = this.#source;
    const settings = this.#settings;
    const assertAllowed = (name: string, version: string) => {
      assertNames(name, locked, settings);
      if (!allowLower) assertNotLower(name, version, locked);
    };
    const verified = source.kind === "npm" ? await this.#verified(source, assertAllowed) : undefined;
    const budget = new TreeBudget(settings.limits, verified?.name ?? this.#label());
    const wanted = verified === undefined ? this.#fileArchive() : { ...verified, location: "" };
    if (verified !== undefined) assertSameContents(verified, locked);
    const { manifest, integrity } = await this.#archive(wanted, budget);
    const { name, version } = manifest;
    if (verified !== undefined) assertSame(wanted, manifest);
    else assertAllowed(name, version);
    await assertNoScripts(this.#root, manifest, settings);
    const facts = await checkModule(this.#root, manifest, settings);
    const dependencies = await this.#dependencies(manifest, budget);
    const path = packagePath(name);
    const resolved = verified?.resolved ?? sourceText(source, name, settings.folder);
    const packages = {
      [path]: { version, resolved, integrity, license: facts.license },
      ...Object.fromEntries(dependencies.map(([location, each]) => [`${path}/${location}`, each])),
    };
    await mkdir(dirname(join(this.#staging.tree, path)), { recursive: true });
    await rename(this.#root, join(this.#staging.tree, path));
    const module = moduleNameOf(name);
    const tree = await store.add(module, this.#staging);
    const { publisher, published, repository } = verified ?? {};
    return {
      module,
      version: {
        source: sourceText(source, name, settings.folder),
        package: name,
        version,
        integrity,
        tree,
        packages,
        ...(publisher !== undefined && { publisher }),
        ...(published !== undefined && { published }),
        ...(repository !== undefined && { repository }),
        verified: verified?.verified ?? [],
        permissions: facts.permissions,
      },
      facts,
      files: budget.files,
      bytes: budget.bytes,
      warnings: this.#warnings,
    };
  }

  async #verified(
    source: PackageSource & { readonly kind: "npm" },
    assertAllowed: (name: string, version: string) => void,
  ): Promise<VerifiedVersion> {
    const { name, version } = await lookUp(source, this.#registries, this.#settings);
    assertAllowed(name, version);
    return await verifyVersion({ name, version }, this.#registries, this.#settings);
  }

  #archive(wanted: WantedArchive, budget: TreeBudget) {
    return fetchArchive(wanted, { root: this.#root, budget, registries: this.#registries });
  }

  #fileArchive(): WantedArchive {
    const { path } = this.#source as Exclude<PackageSource, { kind: "npm" }>;
    return { name: this.#label(), version: "", resolved: `file:${path}`, location: "" };
  }

  /** The name for messages, as long as the name of the package is unknown. */
  #label(): string {
    return this.#source.kind === "npm" ? (this.#source.names[0] as string) : this.#source.path;
  }

  async #dependencies(manifest: UnpackedManifest, budget: TreeBudget): Promise<(readonly [string, LockedPackage])[]> {
    const settings = this.#settings;
    const needed = await dependenciesOf(manifest, join(this.#staging.scratch, "plan"), this.#registries, settings);
    // All are verified before the first of them is fetched.
    const verified = await eachInParallel(needed, PARALLEL_ARCHIVES, async ({ location, ...each }) => {
      return { location, ...(await verifyVersion(each, this.#registries, settings)) };
    });
    return await eachInParallel(verified, PARALLEL_ARCHIVES, async (each) => {
      const { location, name, version, resolved, integrity, deprecated } = each;
      const unpacked = await this.#archive(each, budget);
      assertSame(each, unpacked.manifest);
      await assertNoScripts(join(this.#root, location), unpacked.manifest, settings);
      if (deprecated !== undefined)
        this.#warnings.push(`Its dependency ${name} ${version} is deprecated: ${deprecated}`);
      const license = licenseText(unpacked.manifest.license);
      const alias = location.endsWith(`node_modules/${name}`) ? {} : { name };
      return [location, { ...alias, version, resolved, integrity, license }] as const;
    });
  }
}

/** Names become paths, and a module's name stands for one package. */
function assertNames(name: string, locked: LockedModules, { reserved }: PackageSettings): void {
  const module = moduleNameOf(name);
  if (!packageName.test(name) || !moduleName.test(module))
    throw new PackageError("MANIFEST_INVALID", { package: name, reason: "its name cannot be that of a package" });
  if (reserved.includes(module)) throw new PackageError("NAME_RESERVED", { package: name, module });
  const other = locked[module]?.package;
  if (other !== undefined && other !== name) throw new PackageError("NAME_TAKEN", { package: name, module, other });
}

function assertNotLower(name: string, version: string, locked: LockedModules): void {
  const installed = locked[moduleNameOf(name)]?.version;
  if (semver().valid(version) === null)
    throw new PackageError("MANIFEST_INVALID", { package: name, reason: `its version ${version} is not a version` });
  if (installed !== undefined && semver().lt(version, installed))
    throw new PackageError("VERSION_LOWER", { package: name, version, installed });
}

/** A registry must not replace a version that was installed from it. */
function assertSameContents({ name, version, integrity }: VerifiedVersion, locked: LockedModules): void {
  const module = locked[moduleNameOf(name)];
  for (const known of [module, module?.previous]) {
    if (known?.version !== version || known.integrity === integrity || known.source.startsWith("file:")) continue;
    throw new PackageError("VERSION_REPUBLISHED", { package: name, version });
  }
}

/** Returns the dependencies of a version, without the module's own package. */
export function dependenciesIn({ packages, package: name }: FetchedVersion): [string, LockedPackage][] {
  const own = packagePath(name);
  return Object.entries(packages).filter(([location]) => location !== own);
}
