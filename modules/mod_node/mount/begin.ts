/** Both mounts of a node and the process that holds them; loaded when somebody mounts. */
import { realpath } from "node:fs/promises";
import { ContentFiles } from "./content.ts";
import type { Kernel } from "./fuse/kernel.ts";
import { serve } from "./fuse/serve.ts";
import { Holder } from "./holder.ts";
import { mountType } from "./mount_table.ts";
import type { MountGround, MountPoints } from "./mounts.ts";
import { NameFiles } from "./names/name_files.ts";

/** Kibibytes: as many blocks as a reader asks for ahead. */
const readahead = 2048;

export interface Active {
  readonly holder: Holder;
  readonly names: NameFiles;
  /** Resolves when nothing of it is left. Never rejects: what goes wrong is in the log. */
  readonly over: Promise<unknown>;
}

/** Mounts both paths or none. @throws NodeError with what the system says */
export async function begin(ground: MountGround, { ipfs, ipns }: MountPoints): Promise<Active> {
  const { config, path } = ground.repo;
  const allowOther = config.value("Mounts.FuseAllowOther");
  const shared = { source: await realpath(path), type: mountType, readahead, allowOther };
  const holder = new Holder([
    { ...shared, folder: ipfs, readOnly: true },
    { ...shared, folder: ipns, readOnly: false },
  ]);
  const names = new NameFiles({ ...ground, contents: ipfs, disk: path });
  const contents = new ContentFiles(ground);
  const tell = (system: "fuse/ipfs" | "fuse/ipns") => (error: unknown) =>
    ground.log.write(system, "error", (error as Error).message);
  const kernelOf = (place: number) => holder.kernels[place] as Kernel;
  const over = Promise.all([
    serve(holder.requests(0), kernelOf(0), contents, tell("fuse/ipfs")).catch(tell("fuse/ipfs")),
    serve(holder.requests(1), kernelOf(1), names, tell("fuse/ipns")).catch(tell("fuse/ipns")),
    holder.ended.catch(tell("fuse/ipfs")),
  ]);
  try {
    await holder.mount();
  } catch (error) {
    await over;
    throw error;
  }
  return { holder, names, over };
}
