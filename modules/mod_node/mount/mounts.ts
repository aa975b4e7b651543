/** The mounts of a node (network section 14): the immutable path and the name path as file systems of this machine. */
import { realpath, stat } from "node:fs/promises";
import type { CID } from "multiformats/cid";
import type { Repo } from "../storage/repo/repo.ts";
import { KeyedMutex } from "../util/async/keyed_mutex.ts";
import { NodeError } from "../util/errors.ts";
import { mounted, mountType } from "./mount_table.ts";
import type { NameDeps } from "./names/name_tree.ts";
import { keptRoots } from "./names/own_tree.ts";
import type { ActiveMounts } from "./start_mounts.ts";

export interface MountDeps extends Omit<NameDeps, "contents" | "disk"> {
  readonly repo: Repo;
}

/** Folders. */
export interface MountPoints {
  readonly ipfs: string;
  readonly ipns: string;
}

export class Mounts {
  readonly #deps: MountDeps;
  #active: ActiveMounts | undefined;
  readonly #mutex = new KeyedMutex();

  constructor(deps: MountDeps) {
    this.#deps = deps;
  }

  /** Something is mounted. What stands under the own names is changed there then, and nowhere else. */
  get active(): boolean {
    return this.#active !== undefined;
  }

  /** Of the process that holds the mounts. */
  get pid(): number | undefined {
    return this.#active?.process.pid;
  }

  /**
   * Mounts both paths or none; what was mounted before is unmounted. The configuration says where, one by one, unless
   * the caller does.
   *
   * @throws NodeError with the reference's texts for folders that are none; with what the system says
   */
  async mount(wanted: { readonly [path in keyof MountPoints]?: string | undefined } = {}): Promise<MountPoints> {
    const { config } = this.#deps.repo;
    const { ipfs = config.value("Mounts.IPFS"), ipns = config.value("Mounts.IPNS") } = wanted;
    const points = { ipfs, ipns };
    await this.#mutex.runExclusive("", async () => {
      await this.#unmount();
      const folders = { ipfs: await folderAt(points.ipfs), ipns: await folderAt(points.ipns) };
      const { startMounts } = await import("./start_mounts.ts");
      const active = await startMounts(this.#deps, folders);
      this.#active = active;
      void active.ended.then(() => {
        if (this.#active === active) this.#active = undefined;
      });
    });
    return points;
  }

  /** What was written below the name path is kept, and published if that can be done in a few seconds. */
  unmount(): Promise<void> {
    return this.#mutex.runExclusive("", () => this.#unmount());
  }

  /** What garbage collection has to keep. To be asked by who holds the lock for itself. */
  async roots(): Promise<CID[]> {
    const changed = (await this.#active?.names.roots()) ?? [];
    return [...changed, ...(await keptRoots(this.#deps.metadata))];
  }

  async #unmount(): Promise<void> {
    const active = this.#active;
    if (active === undefined) return;
    await active.process.close().finally(() => active.ended);
  }
}

/** To be called by who has the lock of the repo: whatever is mounted for it is of a process that has been killed. */
export async function unmountStale({ path }: Repo): Promise<void> {
  const all = await mounted(mountType);
  if (all.length === 0) return;
  const own = await realpath(path);
  const { unmount } = await import("./mount_ops.ts");
  for (const { source, folder } of all) if (source === own) await unmount(folder, { force: true });
}

/** As the table of mounts names it. @throws NodeError when it is no folder */
async function folderAt(path: string): Promise<string> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code);
  if (found === "ENOENT") throw new NodeError(`mountpoint does not exist: ${path}`);
  if (typeof found !== "object" || !found.isDirectory()) {
    throw new NodeError(`fuse failed to access mountpoint ${path}`);
  }
  return realpath(path);
}
