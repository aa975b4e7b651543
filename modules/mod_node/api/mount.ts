/** Mounting the node as folders of this machine (FUSE). */
import type { LowLevelNode } from "../low_level_node.ts";
import type { CallOptions, ShardingMode } from "./common.ts";

export interface MountOptions extends CallOptions {
  /** Mount point for /ipfs; by default `Mounts.IPFS` of the configuration. */
  readonly ipfsPath?: string | undefined;
  /** Mount point for /ipns; by default `Mounts.IPNS` of the configuration. */
  readonly ipnsPath?: string | undefined;
  /** When directories below `/ipns` become sharded, and plain again; `by config` by default. */
  readonly sharding?: ShardingMode | undefined;
  /** Take what is not said here from `Import.*` of the configuration; true by default. */
  readonly importDefaults?: boolean | undefined;
  /** A file that has one raw leaf, and neither mode nor time, is stored as that leaf, as Kubo 0.43 does; false by default. */
  readonly joinsLeaf?: boolean | undefined;
  /** Greatest chunk in bytes that `Import.UnixFSChunker` may make; 1 MiB by default. */
  readonly maxChunk?: number | undefined;
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
    async mount({ ipfsPath, ipnsPath, sharding, importDefaults, joinsLeaf, maxChunk } = {}) {
      await node.network();
      const choices = {
        importDefaults,
        joinsLeaf,
        maxChunk,
        sharding: sharding === "by size" ? node.sizeSharding : undefined,
      };
      const { ipfs, ipns } = await node.mounts.mount({ ipfs: ipfsPath, ipns: ipnsPath }, choices);
      return { ipfs, ipns, fuseAllowOther: false, store: ipfs, name: ipns };
    },
  };
}
