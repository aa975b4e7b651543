/** What the blocks of a shared store are opened with. */
import type { CID } from "multiformats/cid";
import type { MakeRoom } from "../../disk_reserve.ts";
import type { Notice } from "../../lmdb/open.ts";
import type { SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";

export interface SharedBlocksOptions {
  /** For the index, the disk cache and what is not in the store yet; nothing in it is missed when it is lost. */
  readonly folder: string;
  readonly objects: ObjectStore;
  /** Of which nothing has been read yet. */
  readonly log: SharedLog;
  /** Removes forms that are stored, on all hosts; see `BlockStore.delete`. */
  readonly remove: (cids: readonly CID[]) => Promise<void>;
  /** Length of a segment in bytes. Default of this and the next two: `STORE_DEFAULTS`. */
  readonly segmentBytes?: number | undefined;
  /** Milliseconds for which the objects of merged segments stay, for hosts that have not heard of it. */
  readonly graceMs?: number | undefined;
  /** Bytes of the disk cache. */
  readonly cacheBytes?: number | undefined;
  /** Bytes that are put but not written to the disk yet and may be held in memory; 4 MiB. */
  readonly bufferedBytes?: number | undefined;
  /** Called with a sentence about each thing that was repaired, or should be. */
  readonly onNotice?: Notice | undefined;
  /** Called when the disk has no room for a write, which is then tried again. */
  readonly makeRoom?: MakeRoom | undefined;
}
