/** Options of the blocks of a shared store. */
import type { CID } from "multiformats/cid";
import type { MakeRoom } from "../../disk_reserve.ts";
import type { Notice } from "../../lmdb/open.ts";
import type { SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";

export interface SharedBlocksOptions {
  /**
   * Folder of the index, the disk cache and segments that are not in the store yet. Apart from the
   * latter, it can be rebuilt when it is lost.
   */
  readonly folder: string;
  readonly objects: ObjectStore;
  /** A log that was not read yet. */
  readonly log: SharedLog;
  /** Removes stored forms on all hosts; see `BlockStore.delete`. */
  readonly remove: (cids: readonly CID[]) => Promise<void>;
  /**
   * Length of a segment in bytes. `STORE_DEFAULTS` has the defaults of this and the next two
   * options.
   */
  readonly segmentBytes?: number | undefined;
  /**
   * Milliseconds for which the objects of merged segments stay, for hosts that do not know of the
   * merge yet.
   */
  readonly graceMs?: number | undefined;
  /** Bytes of the disk cache. */
  readonly cacheBytes?: number | undefined;
  /** Maximum bytes in memory that are put and not written to the disk yet; 4 MiB by default. */
  readonly bufferedBytes?: number | undefined;
  /** Called with a sentence about each problem that was repaired or should be. */
  readonly onNotice?: Notice | undefined;
  /** Called when the disk has no room for a write, which is then tried again. */
  readonly makeRoom?: MakeRoom | undefined;
}
