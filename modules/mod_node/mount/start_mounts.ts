/** Starts both mounts of a node and the mount process. Loaded on the first mount. */
import { realpath } from "node:fs/promises";
import type { Repo } from "../storage/repo/repo.ts";
import { settledWithin } from "../util/async/within.ts";
import type { FuseDevice } from "./fuse/fuse_device.ts";
import { serve } from "./fuse/serve.ts";
import { IpfsFiles } from "./ipfs_files.ts";
import { MountProcess } from "./mount_process.ts";
import { mounted, mountType } from "./mount_table.ts";
import { type ImportChoices, importSettings } from "./names/import_settings.ts";
import { IpnsFiles } from "./names/ipns_files.ts";
import type { NameDeps } from "./names/name_tree.ts";

/** Readahead in KiB: as many blocks as a reader requests ahead. */
const READAHEAD_KIB = 2048;
/** Milliseconds to store and publish the content of an /ipns that was unmounted by hand. */
const MAX_END_MS = 10_000;

export interface MountDeps extends Omit<NameDeps, "contents" | "disk" | "imports"> {
  readonly repo: Repo;
}

/** Absolute paths of the folders. */
export interface MountPoints {
  readonly ipfs: string;
  readonly ipns: string;
}

export interface ActiveMounts {
  readonly process: MountProcess;
  readonly names: IpnsFiles;
  /**
   * Whether /ipns is still served. If it was unmounted by hand, written content is stored first,
   * unless a file is still open there.
   */
  servesNames(): Promise<boolean>;
  /** Resolves when everything has ended. Never rejects; failures are logged. */
  readonly ended: Promise<unknown>;
}

/**
 * Mounts both folders or none. @throws NodeError with the system's text, or for unusable values of
 * `Import.*`
 */
export async function startMounts(
  deps: MountDeps,
  { ipfs, ipns }: MountPoints,
  choices: ImportChoices,
): Promise<ActiveMounts> {
  const { config, path } = deps.repo;
  const imports = importSettings(config, choices);
  const allowOther = config.value("Mounts.FuseAllowOther");
  const shared = { source: await realpath(path), type: mountType, readahead: READAHEAD_KIB, allowOther };
  const process = new MountProcess([
    { ...shared, folder: ipfs, readOnly: true },
    { ...shared, folder: ipns, readOnly: false },
  ]);
  const names = new IpnsFiles({ ...deps, imports, contents: ipfs, disk: path });
  const contents = new IpfsFiles(deps);
  const logFault = (system: "fuse/ipfs" | "fuse/ipns") => (error: unknown) =>
    deps.log.write(system, "error", (error as Error).message);
  const deviceOf = (index: number) => process.devices[index] as FuseDevice;
  let namesServed = true;
  const namesEnded = serve(process.requests(1), deviceOf(1), names, logFault("fuse/ipns"))
    .catch(logFault("fuse/ipns"))
    .finally(() => {
      namesServed = false;
    });
  const ended = Promise.all([
    serve(process.requests(0), deviceOf(0), contents, logFault("fuse/ipfs")).catch(logFault("fuse/ipfs")),
    namesEnded,
    process.ended.catch(logFault("fuse/ipfs")),
  ]);
  try {
    await process.mount();
  } catch (error) {
    await ended;
    throw error;
  }
  const servesNames = async () => {
    const isMounted = (await mounted(mountType)).some(
      ({ folder, source }) => folder === ipns && source === shared.source,
    );
    if (!isMounted) await settledWithin(MAX_END_MS, namesEnded);
    return namesServed;
  };
  return { process, names, servesNames, ended };
}
