/**
 * Watches the free space on the disk. New blocks are refused before the disk is full. So accepted
 * blocks can be written, deletions can be recorded, and compaction has space for one segment.
 * Otherwise, a full disk could not be emptied.
 */
import { failure } from "../../../util/errors.ts";
import { sizeText } from "../../../util/size.ts";
import type { SegmentFs } from "./files.ts";

const MAX_SEGMENT = 512 * 1024 * 1024;
const MIN_SEGMENT = 1024 * 1024;
const segmentsOfDisk = 64;
/** Bytes that are accepted before the file system is queried again. */
const MAX_UNCHECKED = 64 * 1024 * 1024;

/**
 * Returns a suitable segment length for a file system in bytes: large, but a small part of the
 * disk.
 */
export async function segmentLength(fs: SegmentFs, folder: string): Promise<number> {
  const { total } = (await fs.space?.(folder)) ?? { total: Number.POSITIVE_INFINITY };
  return Math.min(MAX_SEGMENT, Math.max(MIN_SEGMENT, Math.floor(total / segmentsOfDisk)));
}

export interface SpaceOptions {
  readonly folder: string;
  readonly fs: SegmentFs;
  /** Bytes that new blocks may not use. */
  readonly reserve: number;
  /** Number of accepted bytes that are not written yet. */
  readonly unwritten: () => number;
}

export class DiskSpace {
  readonly #options: SpaceOptions;
  /** Bytes that may be accepted without a query. */
  #allowance = 0;
  /** The running query for the number of bytes that are free for new blocks. */
  #querying: Promise<number> | undefined;

  constructor(options: SpaceOptions) {
    this.#options = options;
  }

  /** Counts bytes as accepted; false when the file system must be queried first. */
  tryReserve(bytes: number): boolean {
    const counted = Math.min(bytes, MAX_UNCHECKED);
    if (counted > this.#allowance) return false;
    this.#allowance -= counted;
    return true;
  }

  /**
   * Like `tryReserve`, but queries the file system.
   * @throws NodeError STORE_FULL
   */
  async reserve(bytes: number): Promise<void> {
    while (!this.tryReserve(bytes)) {
      // All waiting callers share one query.
      this.#querying ??= this.#refresh();
      const room = await this.#querying;
      if (room >= bytes) continue;
      const { folder, reserve } = this.#options;
      const reason = `${sizeText(Math.max(0, room + reserve))} are free on the disk, ${sizeText(reserve)} of them reserved for maintenance`;
      throw failure("STORE_FULL", { path: folder, reason });
    }
  }

  async #refresh(): Promise<number> {
    try {
      const room = (await this.#free()) - this.#options.reserve;
      this.#allowance = Math.max(0, Math.min(room, MAX_UNCHECKED));
      return room;
    } finally {
      this.#querying = undefined;
    }
  }

  /** Whether maintenance could write that many bytes now. */
  async fits(bytes: number): Promise<boolean> {
    return bytes === 0 || bytes <= (await this.#free());
  }

  /** Returns infinity when the file system does not report its free space. */
  async #free(): Promise<number> {
    const { fs, folder, unwritten } = this.#options;
    const { free } = (await fs.space?.(folder)) ?? { free: Number.POSITIVE_INFINITY };
    return free - unwritten();
  }
}
