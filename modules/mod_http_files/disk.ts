/**
 * Accesses the file system through Node's thread pool, or synchronously where that cannot block for
 * long.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from "node:fs";
import { lstat, statfs } from "node:fs/promises";

export interface Disk {
  /** Returns the stats of a path without following a link; undefined if it does not exist. */
  lstat(path: string): Stats | undefined | Promise<Stats | undefined>;
  /**
   * Returns the bytes of a regular file whose path contains no link; undefined if it differs from
   * `stats`. Missing if files must be read through streams.
   */
  read?(path: string, stats: Stats): Buffer | undefined;
}

/** Never blocks the event loop. Each call costs as much as the rest of a small response. */
export const threads: Disk = {
  async lstat(path) {
    try {
      return await lstat(path);
    } catch (error) {
      if (isAbsence(error)) return undefined;
      throw error;
    }
  },
};

const isAbsence = (error: unknown) => ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");

/**
 * If calls take longer on average, in milliseconds, they wait for a device, and the next calls use
 * the thread pool.
 */
const MAX_MEAN_MS = 1;
const SLOW_MS = 1000;
/** Only one call in this many is timed, because reading the clock is as expensive as the call. */
const QUESTIONS_A_LOOK = 8;
/**
 * Weight of the latest timed call in the average. It is low because a process that shares its cores
 * is delayed now and then.
 */
const WEIGHT = 1 / 16;

const quietly = { throwIfNoEntry: false } as const;

/**
 * A folder that is accessed synchronously, because the system has its names in memory or reads them
 * from a local device.
 */
class LocalFolder implements Disk {
  readonly #clock: () => number;
  #questions = 0;
  #mean = 0;
  #slowUntil = 0;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  get isSlow(): boolean {
    return this.#slowUntil > 0 && this.#clock() < this.#slowUntil;
  }

  lstat(path: string): Stats | undefined {
    return this.#ask(() => lstatSync(path, quietly));
  }

  read(path: string, stats: Stats): Buffer | undefined {
    return this.#ask(() => readSame(path, stats));
  }

  #ask<T>(question: () => T): T {
    if (++this.#questions % QUESTIONS_A_LOOK !== 0) return question();
    const begun = this.#clock();
    try {
      return question();
    } finally {
      const ended = this.#clock();
      this.#mean += (ended - begun - this.#mean) * WEIGHT;
      if (this.#mean > MAX_MEAN_MS) {
        this.#mean = 0;
        this.#slowUntil = ended + SLOW_MS;
      }
    }
  }
}

// Does not follow a link that has replaced the file, and does not wait for the other end of a pipe.
const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

function readSame(path: string, { dev, ino, size, mtimeMs }: Stats): Buffer | undefined {
  const file = openSync(path, flags);
  try {
    const now = fstatSync(file);
    if (now.ino !== ino || now.dev !== dev || now.size !== size || now.mtimeMs !== mtimeMs) return undefined;
    const bytes = Buffer.allocUnsafeSlow(size);
    let length = 0;
    while (length < size) {
      const read = readSync(file, bytes, length, size - length, null);
      if (read === 0) return undefined;
      length += read;
    }
    return bytes;
  } finally {
    closeSync(file);
  }
}

/**
 * Linux file systems on a local device or in memory (statfs(2), f_type). All others, above all
 * network file systems, may be arbitrarily slow. On other systems the numbers have other meanings.
 */
const localTypes: ReadonlySet<number> = new Set(
  process.platform !== "linux"
    ? []
    : [
        0xef53, // ext2, ext3, ext4
        0x58465342, // xfs
        0x9123683e, // btrfs
        0xf2f52010, // f2fs
        0x2fc12fc1, // zfs
        0xca451a4e, // bcachefs
        0x01021994, // tmpfs
        0x858458f6, // ramfs
        0x794c7630, // overlayfs, of containers
        0x73717368, // squashfs
        0xe0f5e1e2, // erofs
      ],
);

const MAX_KNOWN_FOLDERS = 4096;

/** Remembers for each folder how to access it. */
export class Folders {
  readonly #clock: () => number;
  /** Undefined if the folder must be accessed through threads, or is not known yet. */
  readonly #known = new Map<string, LocalFolder | undefined>();

  /** `clock` returns milliseconds. */
  constructor(clock = () => performance.now()) {
    this.#clock = clock;
  }

  /** Returns how to access a folder. The first access always goes through threads. */
  diskOf(folder: string): Disk {
    const local = this.#known.get(folder);
    if (local === undefined && !this.#known.has(folder)) this.#learn(folder);
    return local === undefined || local.isSlow ? threads : local;
  }

  #learn(folder: string): void {
    if (this.#known.size >= MAX_KNOWN_FOLDERS) this.#known.clear();
    this.#known.set(folder, undefined);
    statfs(folder).then(
      ({ type }) => {
        if (localTypes.has(type)) this.#known.set(folder, new LocalFolder(this.#clock));
      },
      // The folder may not exist yet, so the next access tries again.
      () => void this.#known.delete(folder),
    );
  }
}
