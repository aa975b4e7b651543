/** Backs up the host that has loaded this module. */
import { hostname } from "node:os";
import { dirname, resolve } from "node:path";
import { actAs, packageVersion, reasonOf } from "../../core/index.ts";
import type { BackupItem, BackupSnapshot, Module, OwnedItem } from "../../core/types.ts";
import { FolderBackend } from "./backends/folder.ts";
import { type BackendSettings, openBackend, readSecret } from "./backends/open.ts";
import { openRepository, type Repository } from "./repository/repository.ts";
import { prune } from "./repository/upkeep.ts";
import { type Part, writeSnapshot } from "./repository/write.ts";
import { hostBytes, hostFiles } from "./snapshot/host_files.ts";
import { below, Layout } from "./snapshot/layout.ts";
import type { BackupProgress, BackupResult } from "./types.ts";

export interface RunDeps {
  readonly module: Module;
  readonly items: Iterable<OwnedItem<BackupItem>>;
  readonly settings: BackendSettings;
  /** Paths in the option `backup_include`, as they are written there. */
  readonly include: readonly string[];
}

export interface RunOptions {
  /** Number of latest snapshots that are retained. Default: all. */
  readonly keep?: number | undefined;
  readonly signal: AbortSignal;
  readonly progress: (progress: BackupProgress) => void;
}

/** @throws Error that describes the problem with the backend or with the data */
export async function runBackup(
  { module, items, settings, include }: RunDeps,
  { keep, signal, progress }: RunOptions,
): Promise<BackupResult> {
  const began = performance.now();
  const { config, data_path: data } = module.server.status();
  const directory = config === undefined ? process.cwd() : dirname(config);
  const backend = await openBackend(settings, directory);
  const repository = await openRepository(backend, { secret: await readSecret(settings), make: true });
  const layout = new Layout({ config, data: resolve(data) });
  const warnings: string[] = [];
  const time = new Date().toISOString();
  const isSet = (option: string) => module.get_option(option) !== undefined;
  const modulesData = await takeSnapshots(items, { layout, isSet }, signal);
  try {
    const claimed = modulesData.flatMap(({ data }) => Object.values(data.folders));
    const around = claimed.find((folder) => below(folder, resolve(data)) !== undefined);
    // Nothing shows which files in that folder belong to the module, and which to the host.
    if (around !== undefined)
      throw new Error(
        `The data folder ${data} is inside ${around}, which belongs to a module: set data_path to a folder outside of it`,
      );
    const named = [...certificatesOf(module), ...include].map((path) => resolve(directory, path));
    const roots = [...(config === undefined ? [] : [config]), resolve(data), ...named];
    const except = [...claimed, ...(backend instanceof FolderBackend ? [backend.name] : [])];
    const total = modulesData.reduce((sum, { data }) => sum + (data.bytes ?? 0), await hostBytes({ roots, except }));
    const host = hostFiles({ layout, roots, except, warn: (text) => warnings.push(text) });
    const parts: Part[] = [
      ...modulesData.map(({ data, folders }) => ({ files: data.files, folders })),
      { files: host, folders: new Map(["config", "data", "files"].map((name) => [name, name])) },
    ];
    const notes = modulesData.flatMap(({ data }) => data.notes ?? []);
    const facts = () => ({
      time,
      version: packageVersion(),
      machine: hostname(),
      ...(layout.config === undefined ? {} : { config: layout.config }),
      folders: layout.folders,
      notes,
    });
    const snapshot = await writeSnapshot(repository, parts, facts, {
      signal,
      progress: (now) => progress({ ...now, total: Math.max(total, now.bytes) }),
    });
    const { id, files, bytes, added } = snapshot;
    const removed = keep === undefined ? [] : await removeOlder(repository, { id, keep, signal });
    const seconds = Math.round((performance.now() - began) / 100) / 10;
    return { id, time, place: backend.name, files, bytes, added, seconds, removed, warnings };
  } finally {
    warnings.push(...(await releaseAll(modulesData)));
  }
}

interface Removal {
  /** Id of the new snapshot. */
  readonly id: string;
  readonly keep: number;
  readonly signal: AbortSignal;
}

/** Returns the ids of the removed snapshots. */
async function removeOlder(repository: Repository, { id, keep, signal }: Removal): Promise<readonly string[]> {
  try {
    return (await prune(repository, keep, { signal })).snapshots;
  } catch (error) {
    throw new Error(`The backup ${id} succeeded, but older ones could not be removed: ${reasonOf(error)}`);
  }
}

interface ModuleData {
  readonly module: string;
  readonly data: BackupSnapshot;
  readonly folders: ReadonlyMap<string, string>;
}

/** Releases the data of all modules, even if some fail. Returns a sentence for each failure. */
async function releaseAll(modulesData: readonly ModuleData[]): Promise<string[]> {
  const released = await Promise.allSettled(modulesData.map(async ({ data }) => data.release()));
  return released.flatMap((result, at) =>
    result.status === "fulfilled"
      ? []
      : [`The data of the module ${modulesData[at]?.module} could not be released: ${reasonOf(result.reason)}`],
  );
}

interface FolderMapping {
  readonly layout: Layout;
  readonly isSet: (option: string) => boolean;
}

/** Takes a snapshot of the data of all modules. If one fails, releases the others and throws. */
async function takeSnapshots(
  items: RunDeps["items"],
  { layout, isSet }: FolderMapping,
  signal: AbortSignal,
): Promise<ModuleData[]> {
  const modulesData: ModuleData[] = [];
  try {
    for (const { item, owner } of items) {
      const name = owner.host === "*" ? owner.name : `${owner.name}_${owner.host}`;
      const data = await Promise.try(() => actAs(owner, () => item.snapshot(signal))).catch((error: unknown) => {
        throw new Error(`The data of the module ${name} cannot be backed up: ${reasonOf(error)}`, { cause: error });
      });
      const folders = new Map<string, string>();
      modulesData.push({ module: name, data, folders });
      for (const [own, path] of Object.entries(data.folders))
        folders.set(own, layout.folderOf(name, own, resolve(path), isSet));
    }
    return modulesData;
  } catch (error) {
    await releaseAll(modulesData);
    throw error;
  }
}

/** Returns the files that the option `certificates` names. */
function certificatesOf(module: Module): string[] {
  const entries = Object.values(module.get_option_object("certificates") ?? {});
  return entries.flatMap((entry) =>
    Object.values(entry as Record<string, unknown>).filter((path) => typeof path === "string"),
  );
}
