/** The mounts of a node: /ipfs and /ipns as FUSE file systems of this machine. */
import { realpath, stat } from "node:fs/promises";
import type { CID } from "multiformats/cid";
import { storedTreeRoots } from "../content/mfs/key_trees.ts";
import type { Repo } from "../storage/repo/repo.ts";
import { KeyedMutex } from "../util/async/keyed_mutex.ts";
import { failure } from "../util/errors.ts";
import { mounted, mountType } from "./mount_table.ts";
import type { ImportChoices } from "./names/import_settings.ts";
import type { ActiveMounts, MountDeps, MountPoints } from "./start_mounts.ts";

export class Mounts {
  readonly #deps: MountDeps;
  #active: ActiveMounts | undefined;
  readonly #mutex = new KeyedMutex();

  constructor(deps: MountDeps) {
    this.#deps = deps;
  }

  /** Whether something is mounted. */
  get active(): boolean {
    return this.#active !== undefined;
  }

  /** Whether /ipns is mounted. Correct even immediately after somebody has unmounted it by hand. */
  async hasNames(): Promise<boolean> {
    return (await this.#active?.servesNames()) ?? false;
  }

  /** Process id of the mount process. */
  get pid(): number | undefined {
    return this.#active?.process.pid;
  }

  /**
   * Mounts both folders or none. Earlier mounts are unmounted first. A folder that is not given
   * comes from the configuration. `choices` and the configuration decide how written content
   * becomes blocks.
   *
   * @throws NodeError with the reference's texts for invalid folders; with the system's text
   */
  async mount(
    wanted: { readonly [path in keyof MountPoints]?: string | undefined } = {},
    choices: ImportChoices = {},
  ): Promise<MountPoints> {
    const { config } = this.#deps.repo;
    const { ipfs = config.value("Mounts.IPFS"), ipns = config.value("Mounts.IPNS") } = wanted;
    const points = { ipfs, ipns };
    await this.#mutex.runExclusive("", async () => {
      await this.#unmount();
      const folders = { ipfs: await folderAt(points.ipfs), ipns: await folderAt(points.ipns) };
      const { startMounts } = await import("./start_mounts.ts");
      const active = await startMounts(this.#deps, folders, choices);
      this.#active = active;
      void active.ended.then(() => {
        if (this.#active === active) this.#active = undefined;
      });
    });
    return points;
  }

  /**
   * Unmounts. Content that was written below /ipns is stored, and published if that takes a few
   * seconds at most.
   */
  unmount(): Promise<void> {
    return this.#mutex.runExclusive("", () => this.#unmount());
  }

  /**
   * Returns the roots that garbage collection must spare, of all hosts that share the store. The
   * caller holds the lock exclusively.
   */
  async roots(): Promise<CID[]> {
    return [...(await this.openRoots()), ...(await storedTreeRoots(this.#deps.metadata))];
  }

  /**
   * Returns the roots that may be known to this host only: those of its mounts. The caller holds
   * the lock exclusively.
   */
  async openRoots(): Promise<CID[]> {
    return (await this.#active?.names.roots()) ?? [];
  }

  async #unmount(): Promise<void> {
    const active = this.#active;
    if (active === undefined) return;
    await active.process.close().finally(() => active.ended);
  }
}

/**
 * Removes the mounts of a killed process. The caller has the lock of the repo, so no other process
 * uses them.
 */
export async function unmountStale({ path }: Repo): Promise<void> {
  const all = await mounted(mountType);
  if (all.length === 0) return;
  const own = await realpath(path);
  const { unmount } = await import("./mount_ops.ts");
  for (const { source, folder } of all) if (source === own) await unmount(folder, { force: true });
}

/** Returns the folder in the form of the mount table. @throws NodeError if it is not a folder */
async function folderAt(path: string): Promise<string> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code);
  if (found === "ENOENT") throw failure("MOUNT_FAILED", { reason: `mountpoint does not exist: ${path}` });
  if (typeof found !== "object" || !found.isDirectory()) {
    throw failure("MOUNT_FAILED", { reason: `fuse failed to access mountpoint ${path}` });
  }
  return realpath(path);
}
