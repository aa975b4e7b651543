/**
 * Room on the disk. New blocks are refused before there is none: what was taken in can be written then, deletions can be
 * recorded, and compaction has the room of one segment to work in. Without that a full disk could not be emptied.
 */
import { failure } from "../../../util/errors.ts";
import { sizeText } from "../../../util/size.ts";
import type { SegmentFs } from "./files.ts";

const MAX_SEGMENT = 512 * 1024 * 1024;
const MIN_SEGMENT = 1024 * 1024;
const segmentsOfDisk = 64;
/** So many bytes are taken in before the file system is asked again. */
const MAX_UNCHECKED = 64 * 1024 * 1024;

/** Length of a segment that suits a file system, in bytes: large, but little of the whole. */
export async function segmentLength(fs: SegmentFs, folder: string): Promise<number> {
  const { total } = (await fs.space?.(folder)) ?? { total: Number.POSITIVE_INFINITY };
  return Math.min(MAX_SEGMENT, Math.max(MIN_SEGMENT, Math.floor(total / segmentsOfDisk)));
}

export interface SpaceOptions {
  readonly folder: string;
  readonly fs: SegmentFs;
  /** Bytes that are not for new blocks. */
  readonly reserve: number;
  /** Bytes that were taken in and are not written yet. */
  readonly unwritten: () => number;
}

export class DiskSpace {
  readonly #options: SpaceOptions;
  /** Bytes that may be taken in without asking. */
  #left = 0;
  /** How many bytes there are for new blocks. */
  #asking: Promise<number> | undefined;

  constructor(options: SpaceOptions) {
    this.#options = options;
  }

  /** Counts what comes in; false when the file system must be asked first. */
  take(bytes: number): boolean {
    const counted = Math.min(bytes, MAX_UNCHECKED);
    if (counted > this.#left) return false;
    this.#left -= counted;
    return true;
  }

  /** The same, and asks. @throws NodeError STORE_FULL */
  async ask(bytes: number): Promise<void> {
    while (!this.take(bytes)) {
      // Once for all who wait.
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
      this.#left = Math.max(0, Math.min(room, MAX_UNCHECKED));
      return room;
    } finally {
      this.#asking = undefined;
    }
  }

  /** Whether so much could be written now, for upkeep. */
  async fits(bytes: number): Promise<boolean> {
    return bytes === 0 || bytes <= (await this.#free());
  }

  /** Without limit where the file system does not tell. */
  async #free(): Promise<number> {
    const { fs, folder, unwritten } = this.#options;
    const { free } = (await fs.space?.(folder)) ?? { free: Number.POSITIVE_INFINITY };
    return free - unwritten();
  }
}
