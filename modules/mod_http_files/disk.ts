/** How the system is asked for files: through Node's threads, or at once where that cannot hold up anybody else. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from "node:fs";
import { lstat, statfs } from "node:fs/promises";

export interface Disk {
  /** What is at a path, a link as such; undefined where there is nothing. */
  lstat(path: string): Stats | undefined | Promise<Stats | undefined>;
  /**
   * The bytes of a regular file whose path holds no link, unless it is no longer as `stats` say. Left out where files are
   * to be read through streams.
   */
  read?(path: string, stats: Stats): Buffer | undefined;
}

/** Never holds up the event loop; each question costs as much as all the rest of a small answer. */
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

/** Where a question takes longer on average, milliseconds, it waits for a device: the next ones go through threads. */
const MAX_MEAN_MS = 1;
const SLOW_MS = 1000;
/** Questions from one that is timed to the next: to look at the clock costs as much as to ask. */
const QUESTIONS_A_LOOK = 8;
/** Of the mean: so much of it are the last ones that were timed. A process that shares its cores is held up now and then. */
const WEIGHT = 1 / 16;

const quietly = { throwIfNoEntry: false } as const;

/** A folder whose files are asked for at once: the system has their names in memory, or gets them from a device of its own. */
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

// No link is followed that has taken the place of the file, nor is another end of a pipe waited for.
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
 * File systems of Linux that are on a device of the machine or in its memory (statfs(2), f_type). All others, those of a
 * network before all, may take any time to answer; elsewhere the numbers mean other things.
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

/** What is known of the folders that files were asked for in. */
export class Folders {
  readonly #clock: () => number;
  /** Undefined: its files are asked for through threads, or nobody knows yet. */
  readonly #known = new Map<string, LocalFolder | undefined>();

  /** `clock` gives milliseconds. */
  constructor(clock = () => performance.now()) {
    this.#clock = clock;
  }

  /** How to ask for what is in a folder; the first time it is always through threads. */
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
      // There is none (yet): the next who asks learns more.
      () => void this.#known.delete(folder),
    );
  }
}
