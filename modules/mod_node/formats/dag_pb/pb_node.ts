/** A dag-pb node and its links. */
import type { CID } from "multiformats/cid";

export interface PbLink {
  readonly name: string;
  /** Tsize: total size in bytes of the linked block and all blocks below it. */
  readonly size: number;
  readonly cid: CID;
}

export interface PbNode {
  /** Undefined and empty data encode to the same block. */
  readonly data: Uint8Array | undefined;
  readonly links: readonly PbLink[];
}
