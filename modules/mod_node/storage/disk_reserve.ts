/**
 * A file that reserves space on a nearly full disk, so that other programs cannot use it. The node
 * deletes it when the disk has no byte left; it can then still start, remove content and collect
 * garbage.
 */
import { randomFillSync } from "node:crypto";
import { open, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";

/** Makes disk space free; resolves with whether more space is free than before. */
export type MakeRoom = () => Promise<boolean>;

const fileName = "reserve";
const MAX_BYTES = 16 * 1024 * 1024;
/** The reserve takes at most one part in 32 of a disk, so that a small disk is not filled by it. */
const PARTS_OF_DISK = 32;
/** A disk with more free bytes than this needs no reserve. */
const PLENTY_BYTES = 2 * 1024 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
const CHECK_MS = 60_000;

/**
 * Returns the free and total bytes of the disk with a folder. A total of 0 means that the disk has
 * no limit.
 */
type Measure = (folder: string) => Promise<{ readonly free: number; readonly total: number }>;

const measure: Measure = async (folder) => {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { free: bavail * bsize, total: blocks * bsize };
};

/**
 * Deletes the reserve in each folder whose disk has fewer free bytes than the reserve itself.
 * Called before a repo is opened.
 */
export async function releaseIfFull(folders: readonly string[], measured = measure): Promise<void> {
  for (const folder of folders) {
    const path = join(folder, fileName);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    const { free, total } = await measured(folder);
    if (total > 0 && free < found.size) await rm(path, { force: true });
  }
}

export class DiskReserve {
  readonly #folder: string;
  readonly #path: string;
  readonly #measure: Measure;
  #timer: NodeJS.Timeout | undefined;
  #making: Promise<void> = Promise.resolve();

  constructor(folder: string, measured = measure) {
    this.#folder = folder;
    this.#measure = measured;
    this.#path = join(folder, fileName);
  }

  /** Creates the file when the disk is filling up, now and once a minute. Never rejects. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.keep(), CHECK_MS).unref();
    await this.keep();
  }

  /** Creates the file when the disk is filling up and has room for it. Never rejects. */
  keep(): Promise<void> {
    this.#making = this.#making.then(() => this.#make().catch(() => rm(this.#path, { force: true }).catch(() => {})));
    return this.#making;
  }

  /** Deletes the file. Resolves with false when it did not exist. */
  readonly release: MakeRoom = async () => {
    await this.#making;
    try {
      await rm(this.#path);
      return true;
    } catch {
      return false;
    }
  };

  /** Stops the checks; the file stays. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#making;
  }

  async #make(): Promise<void> {
    const { free, total } = await this.#measure(this.#folder);
    const bytes = Math.min(MAX_BYTES, Math.floor(total / PARTS_OF_DISK));
    const size = await stat(this.#path).then(
      ({ size }) => size,
      () => 0,
    );
    // The file takes at most half of the free bytes: the node refuses blocks long before the disk
    // is that full.
    if (total === 0 || free >= PLENTY_BYTES || size >= bytes || free < 2 * bytes) return;
    const file = await open(this.#path, "w", 0o600);
    try {
      const piece = Buffer.allocUnsafe(PIECE_BYTES);
      // Random bytes, because some file systems allocate no space for compressible data.
      for (let left = bytes; left > 0; left -= PIECE_BYTES) {
        await file.writeFile(randomFillSync(piece).subarray(0, Math.min(left, PIECE_BYTES)));
      }
      await file.sync();
    } finally {
      await file.close();
    }
  }
}
