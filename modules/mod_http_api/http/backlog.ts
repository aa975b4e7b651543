/** Bytes that wait for their reader, in the order in which they came: a few in memory, and more in a file. */
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";

export interface BacklogLimits {
  /** Bytes that wait in memory before they go into the file, and that are read from it at once. */
  readonly maxMemory: number;
  /** Bytes in the file from which on it is full. */
  readonly maxFile: number;
}

const MAX_MEMORY_BYTES = 64 * 1024;
/** Of some ten million blocks. */
const MAX_FILE_BYTES = 1024 * 1024 * 1024;

let counter = 0;

/** One that puts and one that takes, each of whom waits for the end of a call before the next. */
export class Backlog {
  readonly #folder: () => string;
  readonly #limits: BacklogLimits;
  /** What came last; all of it is newer than what is in the file. */
  #tail: Uint8Array[] = [];
  #held = 0;
  #file: FileHandle | undefined;
  /** The file has these bytes that were not taken. */
  #from = 0;
  #to = 0;
  #writing: Promise<void> | undefined;

  constructor(
    folder: () => string,
    { maxMemory = MAX_MEMORY_BYTES, maxFile = MAX_FILE_BYTES }: Partial<BacklogLimits> = {},
  ) {
    this.#folder = folder;
    this.#limits = { maxMemory, maxFile };
  }

  get isEmpty(): boolean {
    return this.#held === 0 && this.#from === this.#to && this.#writing === undefined;
  }

  get isFull(): boolean {
    return this.#to >= this.#limits.maxFile;
  }

  async put(piece: Uint8Array): Promise<void> {
    this.#tail.push(piece);
    this.#held += piece.length;
    if (this.#held < this.#limits.maxMemory) return;
    this.#writing = this.#spill();
    await this.#writing;
  }

  /** All that can be had at once, within bounds; undefined while there is nothing, and after the end. */
  async take(): Promise<Uint8Array | undefined> {
    await this.#writing;
    if (this.#from < this.#to) return this.#read();
    if (this.#held === 0) return undefined;
    const tail = this.#tail;
    this.#tail = [];
    this.#held = 0;
    return tail.length === 1 ? tail[0] : Buffer.concat(tail);
  }

  async close(): Promise<void> {
    await this.#writing?.catch(() => undefined);
    const file = this.#file;
    this.#file = undefined;
    this.#from = this.#to;
    await file?.close();
  }

  async #spill(): Promise<void> {
    const bytes = Buffer.concat(this.#tail);
    this.#tail = [];
    this.#held = 0;
    try {
      this.#file ??= await temporary(this.#folder());
      if (this.#from === this.#to) this.#from = this.#to = 0;
      await this.#file.write(bytes, 0, bytes.length, this.#to);
      this.#to += bytes.length;
    } finally {
      this.#writing = undefined;
    }
  }

  async #read(): Promise<Uint8Array> {
    const buffer = Buffer.allocUnsafe(Math.min(this.#limits.maxMemory, this.#to - this.#from));
    const { bytesRead } = await (this.#file as FileHandle).read(buffer, 0, buffer.length, this.#from);
    this.#from += bytesRead;
    return buffer.subarray(0, bytesRead);
  }
}

/** A file that is gone with its handle, where the system allows it; the node empties the folder when it is opened. */
async function temporary(folder: string): Promise<FileHandle> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `answer-${process.pid}-${++counter}`);
  const file = await open(path, "wx+", 0o600);
  // Windows does not unlink open files.
  await rm(path, { force: true }).catch(() => undefined);
  return file;
}
