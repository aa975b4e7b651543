/**
 * Watches the space on the disk. New blocks are refused before the disk is full, so that accepted blocks can be
 * written, deletions can be recorded, and compaction has the space of one segment to work in. Otherwise a full disk
 * could not be emptied.
 */
import { failure } from "../../../util/errors.ts";
import { sizeText } from "../../../util/size.ts";
import type { SegmentFs } from "./files.ts";

const MAX_SEGMENT = 512 * 1024 * 1024;
const MIN_SEGMENT = 1024 * 1024;
const segmentsOfDisk = 64;
/** Bytes that are accepted before the file system is asked again. */
const MAX_UNCHECKED = 64 * 1024 * 1024;

/** A suitable length of a segment for a file system, in bytes: large, but a small part of the whole. */
export async function segmentLength(fs: SegmentFs, folder: string): Promise<number> {
  const { total } = (await fs.space?.(folder)) ?? { total: Number.POSITIVE_INFINITY };
  return Math.min(MAX_SEGMENT, Math.max(MIN_SEGMENT, Math.floor(total / segmentsOfDisk)));
}

export interface SpaceOptions {
  readonly folder: string;
  readonly fs: SegmentFs;
  /** Bytes that new blocks may not use. */
  readonly reserve: number;
  /** Bytes that were accepted and are not written yet. */
  readonly unwritten: () => number;
}

export class DiskSpace {
  readonly #options: SpaceOptions;
  /** Bytes that may be accepted without asking. */
  #allowance = 0;
  /** The number of bytes that are free for new blocks. */
  #asking: Promise<number> | undefined;

  constructor(options: SpaceOptions) {
    this.#options = options;
  }

  /** Counts bytes as accepted; false when the file system must be asked first. */
  tryReserve(bytes: number): boolean {
    const counted = Math.min(bytes, MAX_UNCHECKED);
    if (counted > this.#allowance) return false;
    this.#allowance -= counted;
    return true;
  }

  /** Like `take`, but asks the file system. @throws NodeError STORE_FULL */
  async reserve(bytes: number): Promise<void> {
    while (!this.tryReserve(bytes)) {
      // One request for all who wait.
      this.#asking ??= this.#refresh();
      const room = await this.#asking;
      if (room >= bytes) continue;
      const { folder, reserve } = this.#options;
      const reason = `${sizeText(Math.max(0, room + reserve))} are free on the disk, ${sizeText(reserve)} of them for upkeep`;
      throw failure("STORE_FULL", { path: folder, reason });
    }
  }

  async #refresh(): Promise<number> {
    try {
      const room = (await this.#free()) - this.#options.reserve;
      this.#allowance = Math.max(0, Math.min(room, MAX_UNCHECKED));
      return room;
    } finally {
      this.#asking = undefined;
    }
  }

  /** Whether that many bytes could be written now, for upkeep. */
  async fits(bytes: number): Promise<boolean> {
    return bytes === 0 || bytes <= (await this.#free());
  }

  /** Infinite when the file system does not say. */
  async #free(): Promise<number> {
    const { fs, folder, unwritten } = this.#options;
    const { free } = (await fs.space?.(folder)) ?? { free: Number.POSITIVE_INFINITY };
    return free - unwritten();
  }
}
