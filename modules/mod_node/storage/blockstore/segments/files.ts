/**
 * The files of the segments: the few operations that the store needs, and which files are in use.
 */
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import type { MakeRoom } from "../../disk_reserve.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../../private_files.ts";
import { nameOf, numberOf, segmentHeader } from "./format.ts";

type Write = (from: readonly Uint8Array[], at: number) => Promise<number>;

/** An open file without a position of its own: every operation has an offset. */
export interface SegmentFile {
  /**
   * Fills the arrays in order. Resolves with the number of bytes read, which is smaller than
   * requested only at the end of the file.
   */
  read(into: readonly Uint8Array[], at: number): Promise<number>;
  /**
   * Like `read`, but synchronous, for bytes that are probably in memory.
   * @throws the errors of `read`
   */
  readInline?(into: readonly Uint8Array[], at: number): number;
  /** Resolves with the number of bytes written, which may be smaller than requested. */
  write(from: readonly Uint8Array[], at: number): Promise<number>;
  /**
   * Like `write`, but the data and the file length are durable when the promise resolves; earlier
   * writes need not be. Not every system supports this.
   */
  readonly writeThrough?: Write | undefined;
  /** Resolves when data and length are durable. */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

/** The file system under the store; tests inject faults here. */
export interface SegmentFs {
  /** Returns the names in a folder, which is created when missing. */
  list(folder: string): Promise<string[]>;
  open(path: string, create: boolean): Promise<SegmentFile>;
  remove(path: string): Promise<void>;
  /** Returns the size of a file without opening it. */
  size(path: string): Promise<number>;
  /** Returns the space of the file system with a folder in bytes; undefined when it is unknown. */
  space?(folder: string): Promise<{ readonly free: number; readonly total: number } | undefined>;
  /** Resolves when the entries of a folder are durable. */
  syncFolder(folder: string): Promise<void>;
}

function call<T>(start: (done: (error: Error | null, result: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => start((error, result) => (error ? reject(error) : resolve(result))));
}

/** On other systems, O_DSYNC does not exist or leaves data in the cache of the disk. */
const { O_RDWR, O_DSYNC } = fs.constants;
const canWriteThrough = process.platform === "linux" && O_DSYNC !== undefined;

class DiskFile implements SegmentFile {
  readonly #fd: number;
  readonly #path: string;
  /** Another descriptor of the file, with which each write is durable when it ends. */
  #through: Promise<number> | undefined;

  constructor(fd: number, path: string) {
    this.#fd = fd;
    this.#path = path;
  }

  async read(into: readonly Uint8Array[], at: number): Promise<number> {
    let left = into;
    let done = 0;
    while (left.length > 0) {
      const read = await call<number>((end) => fs.readv(this.#fd, left, at + done, end));
      if (read === 0) break;
      done += read;
      left = dropFirst(left, read);
    }
    return done;
  }

  readInline(into: readonly Uint8Array[], at: number): number {
    let left = into;
    let done = 0;
    while (left.length > 0) {
      const [first] = left as [Uint8Array];
      const position = at + done;
      const read =
        left.length === 1
          ? fs.readSync(this.#fd, first, 0, first.length, position)
          : fs.readvSync(this.#fd, left, position);
      if (read === 0) break;
      done += read;
      left = dropFirst(left, read);
    }
    return done;
  }

  write(from: readonly Uint8Array[], at: number): Promise<number> {
    return call((end) => fs.writev(this.#fd, from, at, end));
  }

  /** Needs one system call and one wait for a thread; `write` and `sync` need two. */
  readonly writeThrough = canWriteThrough ? this.#writeThrough.bind(this) : undefined;

  async #writeThrough(from: readonly Uint8Array[], at: number): Promise<number> {
    this.#through ??= call((end) => fs.open(this.#path, O_RDWR | O_DSYNC, end));
    const fd = await this.#through.catch((error: unknown) => {
      this.#through = undefined;
      throw error;
    });
    return call((end) => fs.writev(fd, from, at, end));
  }

  sync(): Promise<void> {
    return call((end) => fs.fdatasync(this.#fd, (error) => end(error, undefined)));
  }

  truncate(length: number): Promise<void> {
    return call((end) => fs.ftruncate(this.#fd, length, (error) => end(error, undefined)));
  }

  size(): Promise<number> {
    return call<fs.Stats>((end) => fs.fstat(this.#fd, end)).then(({ size }) => size);
  }

  async close(): Promise<void> {
    const through = await this.#through?.catch(() => undefined);
    for (const fd of [this.#fd, through]) {
      if (fd !== undefined) await call((end) => fs.close(fd, (error) => end(error, undefined)));
    }
  }
}

export const diskFs: SegmentFs = {
  async list(folder) {
    await fs.promises.mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
    await fs.promises.access(folder, fs.constants.R_OK | fs.constants.W_OK);
    return fs.promises.readdir(folder);
  },
  open: async (path, create) =>
    new DiskFile(await call((end) => fs.open(path, create ? "w+" : "r+", PRIVATE_FILE, end)), path),
  remove: (path) => fs.promises.rm(path, { force: true }),
  size: async (path) => (await fs.promises.stat(path)).size,
  async space(folder) {
    const { bavail, blocks, bsize } = await fs.promises.statfs(folder);
    // Some file systems have no limit.
    return blocks === 0 ? undefined : { free: bavail * bsize, total: blocks * bsize };
  },
  async syncFolder(folder) {
    // Windows neither needs nor supports it.
    if (process.platform === "win32") return;
    const handle = await fs.promises.open(folder, "r");
    await handle.sync().finally(() => handle.close());
  },
};

/** Returns a file system that repeats writes to a full disk after `makeRoom` has freed space. */
export function withRoom(fs: SegmentFs, makeRoom: MakeRoom | undefined): SegmentFs {
  if (makeRoom === undefined) return fs;
  const tried = <T>(run: () => Promise<T>): Promise<T> =>
    run().catch(async (error: NodeJS.ErrnoException) => {
      if (!fullCodes.has(error.code ?? "") || !(await makeRoom())) throw error;
      return run();
    });
  return {
    ...fs,
    async open(path, create) {
      const file = await tried(() => fs.open(path, create));
      const { writeThrough } = file;
      return {
        read: (into, at) => file.read(into, at),
        ...(file.readInline !== undefined && { readInline: file.readInline.bind(file) }),
        write: (from, at) => tried(() => file.write(from, at)),
        writeThrough: writeThrough && ((from, at) => tried(() => writeThrough(from, at))),
        sync: () => tried(() => file.sync()),
        truncate: (length) => file.truncate(length),
        size: () => file.size(),
        close: () => file.close(),
      };
    },
  };
}

const fullCodes = new Set(["ENOSPC", "EDQUOT"]);

interface Opened {
  readonly file: Promise<SegmentFile>;
  /** The file when it is open. */
  ready: SegmentFile | undefined;
  users: number;
  /** Called when the last user is done, if somebody wants to close the file. */
  idle: (() => void) | undefined;
}

/** Maximum number of unused files that stay open. */
const MAX_OPEN_FILES = 64;

/**
 * Opens each segment once, and closes it only when it is not in use. The segments that were used
 * last stay open.
 */
export class SegmentFiles {
  readonly folder: string;
  readonly fs: SegmentFs;
  readonly #nameOf: (segment: number) => string;
  readonly #opened = new Map<number, Opened>();
  /** Operations that must end before a file is removed. */
  readonly #keeping = new Set<Promise<unknown>>();

  /** `name` is given when the numbers belong to parts of segments. */
  constructor(folder: string, seam: SegmentFs, name: (segment: number) => string = nameOf) {
    this.folder = folder;
    this.fs = seam;
    this.#nameOf = name;
  }

  /** Returns the numbers of the existing segments in order. */
  async list(): Promise<number[]> {
    const names = await this.fs.list(this.folder);
    return names.flatMap((name) => numberOf(name) ?? []).sort((a, b) => a - b);
  }

  /** Returns the size of a segment in bytes. */
  size(segment: number): Promise<number> {
    return this.fs.size(join(this.folder, this.#nameOf(segment)));
  }

  /** Passes the file to `use`. It stays open until `use` has ended, and usually longer. */
  async use<T>(segment: number, use: (file: SegmentFile) => Promise<T>): Promise<T> {
    const opened = this.#opened.get(segment) ?? this.#add(segment, false);
    opened.users += 1;
    try {
      return await use(await opened.file);
    } finally {
      opened.users -= 1;
      if (opened.users === 0) {
        opened.idle?.();
        if (this.#opened.size > MAX_OPEN_FILES) this.#closeOldest(segment);
      }
    }
  }

  /** Returns the file if it is open. The caller must use it before it awaits anything. */
  ready(segment: number): SegmentFile | undefined {
    return this.#opened.get(segment)?.ready;
  }

  /** Closes unused files. The file that was used last becomes the youngest. */
  #closeOldest(used: number): void {
    const opened = this.#opened.get(used);
    if (opened !== undefined && this.#opened.delete(used)) this.#opened.set(used, opened);
    for (const [segment, { users, idle }] of this.#opened) {
      if (users > 0 || idle !== undefined) continue;
      this.#close(segment).catch(() => {});
      if (this.#opened.size <= MAX_OPEN_FILES) return;
    }
  }

  /**
   * Creates an empty segment, or empties a leftover file of that name. File and name are durable
   * when the promise resolves.
   */
  async begin(segment: number): Promise<void> {
    const leftover = await this.#opened.get(segment)?.file;
    await leftover?.truncate(0);
    const file = leftover ?? (await this.#add(segment, true).file);
    await writeAll(file, [segmentHeader], 0);
    await file.sync();
    await this.fs.syncFolder(this.folder);
  }

  /** Resolves when the entry of the folder itself is durable. */
  syncParent(): Promise<void> {
    return this.fs.syncFolder(dirname(this.folder));
  }

  /** Removes the file after running reads have ended. */
  async remove(segment: number): Promise<void> {
    while (this.#keeping.size > 0) await Promise.race(this.#keeping);
    await this.#close(segment);
    await this.fs.remove(join(this.folder, this.#nameOf(segment)));
    await this.fs.syncFolder(this.folder);
  }

  /** Runs `work`, which should be short, and prevents the removal of files until it has ended. */
  async keep<T>(work: () => Promise<T>): Promise<T> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    this.#keeping.add(over);
    try {
      return await work();
    } finally {
      this.#keeping.delete(over);
      resolve();
    }
  }

  /**
   * Opens a segment a second time for the caller, who closes it. It stays readable after the
   * segment was removed.
   */
  openOwn(segment: number): Promise<SegmentFile> {
    return this.fs.open(join(this.folder, this.#nameOf(segment)), false);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#opened.keys()].map((segment) => this.#close(segment)));
  }

  #add(segment: number, create: boolean): Opened {
    const file = this.fs.open(join(this.folder, this.#nameOf(segment)), create);
    const opened: Opened = { file, ready: undefined, users: 0, idle: undefined };
    this.#opened.set(segment, opened);
    file.then(
      (ready) => {
        opened.ready = ready;
      },
      // A failure is not cached: the next caller tries again.
      () => this.#opened.delete(segment),
    );
    return opened;
  }

  async #close(segment: number): Promise<void> {
    const opened = this.#opened.get(segment);
    if (opened === undefined) return;
    // Somebody may have begun to use the file since the last user was done. A file must not be
    // closed under a reader, because its descriptor soon belongs to another file.
    while (opened.users > 0) {
      await new Promise<void>((resolve) => {
        opened.idle = resolve;
      });
    }
    this.#opened.delete(segment);
    const file = await opened.file.catch(() => undefined);
    await file?.close();
  }
}

/** Writes all parts, with as many calls as necessary. */
export async function writeAll(
  file: Pick<SegmentFile, "write">,
  parts: readonly Uint8Array[],
  at: number,
): Promise<void> {
  let left = parts;
  let offset = at;
  while (left.length > 0) {
    const written = await file.write(left, offset);
    if (written === 0) throw new Error("the system wrote no bytes");
    offset += written;
    left = dropFirst(left, written);
  }
}

/** Returns the arrays without their first `bytes` bytes. */
function dropFirst(parts: readonly Uint8Array[], bytes: number): readonly Uint8Array[] {
  let rest = bytes;
  let done = 0;
  while (done < parts.length && rest >= (parts[done] as Uint8Array).length) {
    rest -= (parts[done] as Uint8Array).length;
    done += 1;
  }
  if (rest === 0) return parts.slice(done);
  return [(parts[done] as Uint8Array).subarray(rest), ...parts.slice(done + 1)];
}
