/** Diagnoses a repo that no node has open, for `modhost doctor` and similar tools. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { lostAndFound, metadataCopy } from "../migration/open_stores/engines.ts";
import { FuseDevice } from "../mount/fuse/fuse_device.ts";
import { copyHeader, readCopy } from "../storage/metadata/copy_file.ts";
import { defaultStorePaths, resolveStorePaths, type StorePaths, storePaths } from "../storage/repo/datastore.ts";
import { leaseName } from "../storage/repo/lease.ts";
import { isHolderAlive, ownLease, readLease, textOf } from "../storage/repo/lease_holder.ts";

export interface RepoInspection {
  /** Peer id of its identity. */
  readonly peer: string | undefined;
  /**
   * The folder of the blocks, and the damaged ones that were set aside; undefined if `metadata` is.
   */
  readonly blocks?: {
    readonly path: string;
    readonly setAside: { readonly files: number; readonly bytes: number };
  };
  /** The process that the repo's lease names. */
  readonly holder?: {
    readonly pid: number;
    /** Description for people: `process 12`, followed by the host if it is another one. */
    readonly text: string;
    /** Whether that process runs; undefined if this cannot be determined from here. */
    readonly runs: boolean | undefined;
    /**
     * When the lease was last renewed, in milliseconds since 1970; a running process renews it
     * every few seconds.
     */
    readonly renewed: number;
  };
  /**
   * Where pins, files and names are stored; undefined if the configuration names a store that this
   * node cannot open.
   */
  readonly metadata?: {
    readonly path: string;
    readonly exists: boolean;
    /** Size of the metadata file. */
    readonly bytes: number;
    /**
     * The backup copy of the metadata; `made` is undefined if there is none, `fault` says why it
     * could not be restored.
     */
    readonly copy: { readonly path: string; readonly made?: string; readonly fault?: string };
  };
  /**
   * Folders that `mount` would use, if the configuration names unusual ones or the usual ones
   * exist.
   */
  readonly mounts: readonly string[];
  /**
   * Why this process could not mount anything; undefined if it could, or if there is nothing to
   * mount.
   */
  readonly mountFault?: string;
}

const usualMounts = { IPFS: "/ipfs", IPNS: "/ipns" } as const;

/**
 * Inspects a repo without changing it; the copy of the metadata is read to its end. `data` is the
 * folder of blocks and metadata if they are outside the repo. @throws Error for a config that
 * cannot be read
 */
export async function inspectRepo(folder: string, data?: string): Promise<RepoInspection> {
  const config = JSON.parse(await readFile(join(folder, "config"), "utf8")) as {
    readonly Identity?: { readonly PeerID?: string };
    readonly Datastore?: { readonly Spec?: Parameters<typeof storePaths>[0] };
    readonly Mounts?: Readonly<Record<string, unknown>>;
  };
  const paths =
    data === undefined ? pathsOf(folder, config.Datastore?.Spec) : resolveStorePaths(data, defaultStorePaths);
  const [holder, metadata, blocks, mounts] = await Promise.all([
    holderOf(folder),
    metadataOf(paths),
    blocksOf(paths),
    mountsOf(config.Mounts),
  ]);
  const fault = mounts.length === 0 ? undefined : mountFault();
  return {
    peer: config.Identity?.PeerID,
    mounts,
    ...(blocks && { blocks }),
    ...(holder && { holder }),
    ...(metadata && { metadata }),
    ...(fault !== undefined && { mountFault: fault }),
  };
}

async function holderOf(folder: string): Promise<RepoInspection["holder"]> {
  const found = await readLease(join(folder, leaseName));
  if (found === undefined) return undefined;
  const [text, runs] = await Promise.all([textOf(found), isHolderAlive(found, await ownLease(folder, ""))]);
  return { pid: found.holder.pid, text, runs, renewed: found.renewed };
}

async function metadataOf(paths: StorePaths | undefined): Promise<RepoInspection["metadata"]> {
  if (paths === undefined) return undefined;
  const data = await stat(join(paths.metadata, "data.mdb")).catch(() => undefined);
  const path = metadataCopy(paths);
  const bytes = data?.size ?? 0;
  return { path: paths.metadata, exists: bytes > 0, bytes, copy: { path, ...(await copyOf(path)) } };
}

async function blocksOf(paths: StorePaths | undefined): Promise<RepoInspection["blocks"]> {
  if (paths === undefined) return undefined;
  const folder = join(paths.blocks, lostAndFound);
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  return { path: paths.blocks, setAside: { files: names.length, bytes } };
}

function pathsOf(folder: string, spec: Parameters<typeof storePaths>[0] = {}): StorePaths | undefined {
  try {
    return resolveStorePaths(folder, storePaths(spec));
  } catch {
    return undefined;
  }
}

async function copyOf(path: string): Promise<{ readonly made?: string; readonly fault?: string }> {
  if ((await stat(path).catch(() => undefined)) === undefined) return {};
  try {
    const made = (await copyHeader(path))?.made;
    for await (const _ of readCopy(path));
    return made === undefined ? {} : { made };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

async function mountsOf(named: Readonly<Record<string, unknown>> = {}): Promise<string[]> {
  const folders = Object.entries(usualMounts).map(([name, usual]) => {
    const value = named[name];
    return { path: typeof value === "string" && value !== "" ? value : usual, usual };
  });
  const exists = async (path: string) => (await stat(path).catch(() => undefined))?.isDirectory() === true;
  const wanted = await Promise.all(folders.map(async ({ path, usual }) => path !== usual || (await exists(path))));
  return folders.filter((_, at) => wanted[at]).map(({ path }) => path);
}

function mountFault(): string | undefined {
  try {
    for (const device of FuseDevice.open(1)) device.close();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
