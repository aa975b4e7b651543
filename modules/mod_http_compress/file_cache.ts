/** Caches compressed files in memory. The most recently used ones stay, up to a number of bytes. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Jobs } from "./jobs.ts";

/** One state of a file. */
export interface FileState {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
}

/** Bytes that are counted for an entry in addition to its content. */
const ENTRY_BYTES = 512;

/** A file after compression. `bytes` is undefined if compression does not make it smaller. */
export interface Entry {
  readonly bytes: Buffer | undefined;
}

export class FileCache {
  #max: number;
  #used = 0;
  /** Entries by key, the most recently used last. */
  readonly #entries = new Map<string, Entry>();
  readonly #jobs = new Map<string, Promise<Entry | undefined>>();

  constructor(max: number) {
    this.#max = max;
  }

  set max(max: number) {
    this.#max = max;
    this.#shrink();
  }

  get used(): number {
    return this.#used;
  }

  /** Returns undefined if the file is not cached. */
  find(file: FileState, encoding: string): Entry | undefined {
    const key = keyOf(file, encoding);
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  /**
   * Reads and compresses the file with `pack`, once for all concurrent callers, and caches the
   * result unless the file has changed meanwhile. Returns undefined if no job slot is free.
   * Resolves to undefined if the file has changed.
   */
  make(
    file: FileState,
    encoding: string,
    pack: (bytes: Buffer) => Promise<Buffer>,
    jobs: Jobs,
  ): Promise<Entry | undefined> | undefined {
    const key = keyOf(file, encoding);
    const running = this.#jobs.get(key);
    if (running !== undefined) return running;
    const job = jobs.try(() => this.#make(key, file, pack))?.finally(() => this.#jobs.delete(key));
    if (job !== undefined) this.#jobs.set(key, job);
    return job;
  }

  async #make(key: string, file: FileState, pack: (bytes: Buffer) => Promise<Buffer>): Promise<Entry | undefined> {
    const plain = await readState(file);
    if (plain === undefined) return undefined;
    const packed = await pack(plain);
    const entry = { bytes: packed.length < plain.length ? packed : undefined };
    this.#keep(key, entry);
    return entry;
  }

  #keep(key: string, entry: Entry): void {
    const size = sizeOf(entry);
    if (size > this.#max) return;
    this.#entries.set(key, entry);
    this.#used += size;
    this.#shrink();
  }

  #shrink(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#used <= this.#max) return;
      this.#entries.delete(key);
      this.#used -= sizeOf(entry);
    }
  }
}

function keyOf({ path, size, mtimeMs, ino }: FileState, encoding: string): string {
  return JSON.stringify([encoding, size, mtimeMs, ino, path]);
}

function sizeOf({ bytes }: Entry): number {
  return ENTRY_BYTES + (bytes?.length ?? 0);
}

// Opening a pipe that has replaced the file does not block until its other end is opened.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Returns the bytes of a file if it is in this state before and after the read; else undefined. */
async function readState(file: FileState): Promise<Buffer | undefined> {
  const handle = await open(file.path, flags).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    if (!(await isIn(handle, file))) return undefined;
    const bytes = await handle.readFile();
    return bytes.length === file.size && (await isIn(handle, file)) ? bytes : undefined;
  } finally {
    await handle.close();
  }
}

async function isIn(handle: FileHandle, { size, mtimeMs, ino }: FileState): Promise<boolean> {
  const now = await handle.stat();
  return now.size === size && now.mtimeMs === mtimeMs && now.ino === ino;
}
