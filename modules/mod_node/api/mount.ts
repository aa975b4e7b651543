/** Mounting the node as folders of this machine (FUSE). */
import type { LowLevelNode } from "../node/low_level_node.ts";
import type { CallOptions, ShardingMode } from "./common.ts";

export interface MountOptions extends CallOptions {
  /** Mount point for /ipfs; by default `Mounts.IPFS` of the configuration. */
  readonly ipfsPath?: string | undefined;
  /** Mount point for /ipns; by default `Mounts.IPNS` of the configuration. */
  readonly ipnsPath?: string | undefined;
  /** When directories below `/ipns` become sharded, and plain again; `by config` by default. */
  readonly sharding?: ShardingMode | undefined;
  /** Use `Import.*` of the configuration for options that are not given; true by default. */
  readonly importDefaults?: boolean | undefined;
  /**
   * Store a file that has one raw leaf, and neither mode nor time, as that leaf, as Kubo 0.43 does;
   * false by default.
   */
  readonly joinsLeaf?: boolean | undefined;
  /** Maximum size in bytes of a chunk that `Import.UnixFSChunker` may produce; 1 MiB by default. */
  readonly maxChunk?: number | undefined;
}

/** The mount points, under the names that go-ipfs uses and under those that Kubo uses. */
export interface MountResult {
  readonly ipfs: string;
  readonly ipns: string;
  /** Always false, as in the reference. */
  readonly fuseAllowOther: boolean;
  readonly store: string;
  readonly name: string;
}

export interface MountApi {
  /**
   * Mounts both folders or neither; earlier mounts are unmounted first. @throws NodeError while the
   * node is offline
   */
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
