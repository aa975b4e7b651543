/** Compressed files, kept in memory: those asked for last, up to a number of bytes. */
import { type FileHandle, open } from "node:fs/promises";
import type { Jobs } from "./jobs.ts";

/** One state of a file. */
export interface FileState {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
}

/** What is counted for an entry beside its bytes. */
const ENTRY_BYTES = 512;

/** A file that was compressed; `bytes` undefined: it does not get smaller. */
export interface Entry {
  readonly bytes: Buffer | undefined;
}

export class FileCache {
  #max: number;
  #used = 0;
  /** The one asked for last is the last. */
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

  /** Undefined: it is not known. */
  find(file: FileState, encoding: string): Entry | undefined {
    const key = keyOf(file, encoding);
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  /**
   * What `pack` makes of the file, which is read and packed once for all who ask at the same time; kept if it has not
   * changed meanwhile. Undefined at once: there is no room for the job. Undefined later: it is another file by now.
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

/** All bytes of a file that is, before and after, in this state; else undefined. */
async function readState(file: FileState): Promise<Buffer | undefined> {
  const handle = await open(file.path).catch(() => undefined);
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
