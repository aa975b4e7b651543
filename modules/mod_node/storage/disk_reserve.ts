/**
 * A file that keeps some room on a disk that is nearly full, also from other programs. It is given up when the disk has
 * no byte left, so that the node can start, remove things and collect garbage.
 */
import { randomFillSync } from "node:crypto";
import { open, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";

/** Tells whether there is room now that was not there before. */
export type MakeRoom = () => Promise<boolean>;

const fileName = "reserve";
const MAX_BYTES = 16 * 1024 * 1024;
/** Its part of a small disk. */
const PARTS_OF_DISK = 32;
/** A disk with more than this left needs none. */
const PLENTY_BYTES = 2 * 1024 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
const CHECK_MS = 60_000;

/** Bytes of the disk that holds a folder; a total of 0 says that there is no limit. */
type Measure = (folder: string) => Promise<{ readonly free: number; readonly total: number }>;

const measure: Measure = async (folder) => {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { free: bavail * bsize, total: blocks * bsize };
};

/** Gives up a reserve in one of these folders when its disk has less left than that; before a repo is opened. */
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

  /** Makes the file where it is needed, now and from time to time. Never rejects. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.keep(), CHECK_MS).unref();
    await this.keep();
  }

  /** Makes the file, if the disk is filling up and there is room for it. Never rejects. */
  keep(): Promise<void> {
    this.#making = this.#making.then(() => this.#make().catch(() => rm(this.#path, { force: true }).catch(() => {})));
    return this.#making;
  }

  /** Removes the file; false when there was none. */
  readonly release: MakeRoom = async () => {
    await this.#making;
    try {
      await rm(this.#path);
      return true;
    } catch {
      return false;
    }
  };

  /** The file stays. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#making;
  }

  async #make(): Promise<void> {
    const { free, total } = await this.#measure(this.#folder);
    const bytes = Math.min(MAX_BYTES, Math.floor(total / PARTS_OF_DISK));
    const held = await stat(this.#path).then(
      ({ size }) => size,
      () => 0,
    );
    // Half of what is left at most: blocks are refused long before that.
    if (total === 0 || free >= PLENTY_BYTES || held >= bytes || free < 2 * bytes) return;
    const file = await open(this.#path, "w", 0o600);
    try {
      const piece = Buffer.allocUnsafe(PIECE_BYTES);
      // Some file systems keep no room for what can be compressed.
      for (let left = bytes; left > 0; left -= PIECE_BYTES) {
        await file.writeFile(randomFillSync(piece).subarray(0, Math.min(left, PIECE_BYTES)));
      }
      await file.sync();
    } finally {
      await file.close();
    }
  }
}
