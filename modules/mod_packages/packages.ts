/** The operations on packages, which run in the server or in a command. */
import type { ModulePermissions, ModuleRun } from "../../core/types.ts";
import type { ModuleDescription, VersionChange } from "./describe.ts";
import type { FetchedModule } from "./fetch/fetch_module.ts";
import type { LockedModule } from "./lockfile/format.ts";
import type { PackageSettings } from "./settings.ts";
import type { TreeFault } from "./store/tree.ts";

/** A fetched module that an operator may install. */
export interface Offer {
  readonly module: string;
  readonly version: string;
  /** Identifies the files: name it when you install them. */
  readonly tree: string;
  readonly description: ModuleDescription;
  /** The declared permissions. */
  readonly permissions: ModulePermissions;
  /** The installed version, what was agreed to, and how the fetched one differs. */
  readonly installed?: Agreed & { readonly version: string; readonly changes: readonly VersionChange[] };
}

/** The rights of a module that an operator agrees to. */
export interface Agreed {
  readonly grant: ModulePermissions;
  readonly run: ModuleRun;
}

/** An installed module for people. */
export interface PackageState extends Agreed {
  readonly module: string;
  readonly package: string;
  readonly version: string;
  readonly source: string;
  readonly installed: string;
  readonly verified: readonly string[];
  readonly previous?: string;
}

/** Maximum number of fetched modules that wait for consent. */
const MAX_FETCHED = 50;

export class Packages {
  readonly #settings: () => PackageSettings;
  readonly #fetched = new Map<string, FetchedModule>();

  constructor(settings: () => PackageSettings) {
    this.#settings = settings;
  }

  /** Loads the engine, which is large and rarely needed. */
  engine(): Promise<typeof import("./engine.ts")> {
    return import("./engine.ts");
  }

  /** Returns the settings; `saveLock` replaces how the lock file is written. */
  settings(saveLock?: PackageSettings["saveLock"]): PackageSettings {
    return { ...this.#settings(), ...(saveLock && { saveLock }) };
  }

  async list(): Promise<PackageState[]> {
    const { readLockFile } = await this.engine();
    const modules = await readLockFile(this.settings().lockFile);
    return Object.entries(modules).map(([module, each]) => {
      const { package: id, version, source, installed, verified, grant, run, previous } = each;
      const before = previous === undefined ? {} : { previous: previous.version };
      return { module, package: id, version, source, installed, verified, grant, run, ...before };
    });
  }

  /** Fetches and checks a module. Nothing of it runs before it is installed. */
  async fetch(source: string, options: { readonly allowLower?: boolean } = {}): Promise<Offer> {
    const { changesBetween, describeModule, fetchModule, readLockFile } = await this.engine();
    const settings = this.settings();
    const fetched = await fetchModule(source, settings, options);
    const { module, version } = fetched;
    this.#keep(fetched);
    const current = (await readLockFile(settings.lockFile))[module];
    return {
      module,
      version: version.version,
      tree: version.tree,
      description: describeModule(fetched, settings),
      permissions: version.permissions,
      ...(current && {
        installed: {
          version: current.version,
          grant: current.grant,
          run: current.run,
          changes: changesBetween(current, version),
        },
      }),
    };
  }

  /** Returns the version of a fetched module. @throws Error if it is not fetched */
  versionOf(module: string, tree: string): string {
    return this.#fetchedAs(module, tree).version.version;
  }

  /** Installs a fetched module, or puts it in the place of the installed version. */
  async install(module: string, tree: string, agreed: Agreed, saveLock?: PackageSettings["saveLock"]) {
    const fetched = this.#fetchedAs(module, tree);
    const { installModule, pruneStore } = await this.engine();
    const settings = this.settings(saveLock);
    const installed = await installModule(fetched, agreed, settings);
    this.#fetched.delete(keyOf(module, tree));
    // The module is installed, whatever happens here: the next installation prunes again.
    await pruneStore(settings).catch(() => undefined);
    return installed;
  }

  async remove(module: string, saveLock?: PackageSettings["saveLock"]): Promise<LockedModule> {
    return (await this.engine()).removeModule(module, this.settings(saveLock));
  }

  async rollBack(module: string, saveLock?: PackageSettings["saveLock"]): Promise<LockedModule> {
    return (await this.engine()).rollBackModule(module, this.settings(saveLock));
  }

  async verify(): Promise<Record<string, TreeFault[]>> {
    return (await this.engine()).verifyModules(this.settings());
  }

  /** Fetches what the lock file names and the store lacks; returns the modules. */
  async fetchLocked(): Promise<string[]> {
    return (await this.engine()).restoreModules(this.settings());
  }

  #fetchedAs(module: string, tree: string): FetchedModule {
    const fetched = this.#fetched.get(keyOf(module, tree));
    if (fetched === undefined) throw new Error(`${module} is not fetched, or was fetched long ago: fetch it again`);
    return fetched;
  }

  #keep(fetched: FetchedModule): void {
    this.#fetched.set(keyOf(fetched.module, fetched.version.tree), fetched);
    for (const key of this.#fetched.keys()) if (this.#fetched.size > MAX_FETCHED) this.#fetched.delete(key);
  }
}

const keyOf = (module: string, tree: string): string => `${module} ${tree}`;
