/** A dag-pb node and its links. */
import type { CID } from "multiformats/cid";

export interface PbLink {
  readonly name: string;
  /** Tsize: the size in bytes of the block that the link leads to and all below it. */
  readonly size: number;
  readonly cid: CID;
}

export interface PbNode {
  /** Undefined and empty data give the same block. */
  readonly data: Uint8Array | undefined;
  readonly links: readonly PbLink[];
}
