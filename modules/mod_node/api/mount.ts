/** Mounting the node as folders of this machine (FUSE). */
import type { LowLevelNode } from "../low_level_node.ts";
import type { CallOptions } from "./common.ts";

export interface MountOptions extends CallOptions {
  /** Mount point for /ipfs; by default `Mounts.IPFS` of the configuration. */
  readonly ipfsPath?: string | undefined;
  /** Mount point for /ipns; by default `Mounts.IPNS` of the configuration. */
  readonly ipnsPath?: string | undefined;
}

/** The mount points, under the names of the reference and of its successor. */
export interface MountResult {
  readonly ipfs: string;
  readonly ipns: string;
  /** Always false, as in the reference. */
  readonly fuseAllowOther: boolean;
  readonly store: string;
  readonly name: string;
}

export interface MountApi {
  /** Mounts both folders or none; earlier mounts are unmounted first. @throws NodeError while the node is offline */
  mount(options?: MountOptions): Promise<MountResult>;
}

export function mountApi(node: LowLevelNode): MountApi {
  return {
    async mount({ ipfsPath, ipnsPath } = {}) {
      await node.network();
      const { ipfs, ipns } = await node.mounts.mount({ ipfs: ipfsPath, ipns: ipnsPath });
      return { ipfs, ipns, fuseAllowOther: false, store: ipfs, name: ipns };
    },
  };
}
