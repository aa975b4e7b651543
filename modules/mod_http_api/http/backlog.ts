/** Buffers bytes until they are read, in order: a small part in memory, the rest in a file. */
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";

export interface BacklogLimits {
  /**
   * Bytes to collect in memory before they are written to the file, and to read from it at once.
   */
  readonly maxMemory: number;
  /** Bytes in the file at which the backlog is full. */
  readonly maxFile: number;
}

const MAX_MEMORY_BYTES = 64 * 1024;
/** Default of `maxFile`: enough for the response lines of about ten million blocks. */
const MAX_FILE_BYTES = 1024 * 1024 * 1024;

let counter = 0;

/** Has one writer and one reader. Each awaits a call before it makes the next. */
export class Backlog {
  readonly #folder: () => string;
  readonly #limits: BacklogLimits;
  /** The newest bytes, in memory. The file has only older ones. */
  #tail: Uint8Array[] = [];
  #bytesInMemory = 0;
  #file: FileHandle | undefined;
  /** The range of the file that was not read yet. */
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
    return this.#bytesInMemory === 0 && this.#from === this.#to && this.#writing === undefined;
  }

  get isFull(): boolean {
    return this.#to >= this.#limits.maxFile;
  }

  async put(piece: Uint8Array): Promise<void> {
    this.#tail.push(piece);
    this.#bytesInMemory += piece.length;
    if (this.#bytesInMemory < this.#limits.maxMemory) return;
    this.#writing = this.#spill();
    await this.#writing;
  }

  /**
   * Returns all bytes that are available at once, within bounds. Undefined while there are none,
   * and after the end.
   */
  async take(): Promise<Uint8Array | undefined> {
    await this.#writing;
    if (this.#from < this.#to) return this.#read();
    if (this.#bytesInMemory === 0) return undefined;
    const tail = this.#tail;
    this.#tail = [];
    this.#bytesInMemory = 0;
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
    this.#bytesInMemory = 0;
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

/**
 * Opens a file that vanishes when its handle is closed, where the system allows that. Elsewhere the
 * node empties the folder when it opens.
 */
async function temporary(folder: string): Promise<FileHandle> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `answer-${process.pid}-${++counter}`);
  const file = await open(path, "wx+", 0o600);
  // Windows does not unlink open files.
  await rm(path, { force: true }).catch(() => undefined);
  return file;
}
