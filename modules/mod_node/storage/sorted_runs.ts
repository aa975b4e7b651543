/**
 * Sorts any number of entries by name. Entries are sorted in memory in runs, which are appended to
 * a file and merged when they are read.
 */
import { type FileHandle, mkdir, mkdtemp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { compareNames } from "../formats/dag_pb/dag_pb.ts";
import { inSlices, type Steps, sortedSteps, TimeSlices } from "../util/async/steps.ts";
import { isFullDisk } from "./full_disk.ts";
import { type Record, type Run, RunReader } from "./run_reader.ts";

export interface EntryCodec<T> {
  encode(value: T): Uint8Array;
  /** `bytes` are valid only during the call. */
  decode(name: string, bytes: Uint8Array): T;
}

/** Bytes of a run, which stays in memory until it is sorted. */
const RUN_BYTES = 2 ** 20;
/** Maximum bytes of all runs in memory when the disk is full. */
const MAX_BYTES_ON_FULL_DISK = 128 * 2 ** 20;
const PAGE = 256;
const COPIED_PER_STEP = 1024;
/** Bytes of the two lengths before name and value. */
const HEAD = 8;

/**
 * Sorts entries by name; entries with the same name keep their order. On a full disk, up to 128 MiB
 * stay in memory, because listing a directory must not need disk space. Supports one caller at a
 * time.
 * @throws errors of the file system
 */
export class SortedRuns<T> {
  readonly #folder: string;
  readonly #codec: EntryCodec<T>;
  readonly #open: typeof openScratchFile;
  #bytes = Buffer.allocUnsafeSlow(RUN_BYTES);
  #end = 0;
  #names: string[] = [];
  /** Offset of each entry in `#bytes`. */
  #starts: number[] = [];
  readonly #runs: Run[] = [];
  #file: ScratchFile | undefined;
  #fileEnd = 0;
  #bytesInMemory = 0;

  constructor(folder: string, codec: EntryCodec<T>, openFile = openScratchFile) {
    this.#folder = folder;
    this.#codec = codec;
    this.#open = openFile;
  }

  /** Adds an entry. When it returns a promise, the caller awaits it before the next call. */
  add(name: string, value: T): Promise<void> | undefined {
    const encoded = this.#codec.encode(value);
    const size = HEAD + Buffer.byteLength(name) + encoded.length;
    if (this.#end + size <= this.#bytes.length) return this.#append(name, encoded);
    return this.#flush().then(() => {
      if (size > this.#bytes.length) this.#bytes = Buffer.allocUnsafeSlow(size);
      this.#append(name, encoded);
    });
  }

  /**
   * Yields all entries in pages, in order of the bytes of their names. Nothing may be added after
   * that.
   */
  async *pages(): AsyncGenerator<readonly T[], void, undefined> {
    if (this.#names.length > 0) this.#runs.push({ bytes: await this.#sorted() });
    const readers: RunReader[] = [];
    for (const [at, run] of this.#runs.entries()) {
      const reader = new RunReader(run, at, this.#file?.handle);
      if (await reader.next()) readers.push(reader);
    }
    readers.sort(inTurn);
    const slices = new TimeSlices();
    let page: T[] = [];
    for (let first = readers[0]; first !== undefined; first = readers[0]) {
      page.push(this.#codec.decode(first.name, first.value));
      const more = first.next();
      if (!(more instanceof Promise ? await more : more)) readers.shift();
      else moveBack(readers);
      if (page.length < PAGE) continue;
      yield page;
      page = [];
      const turn = slices.due();
      if (turn !== undefined) await turn;
    }
    if (page.length > 0) yield page;
  }

  /** Removes everything. */
  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  #append(name: string, value: Uint8Array): undefined {
    const bytes = this.#bytes;
    this.#starts.push(this.#end);
    this.#names.push(name);
    const length = bytes.write(name, this.#end + HEAD);
    bytes.writeUInt32LE(length, this.#end);
    bytes.writeUInt32LE(value.length, this.#end + 4);
    bytes.set(value, this.#end + HEAD + length);
    this.#end += HEAD + length + value.length;
  }

  /** Returns the sorted run of the entries in memory and clears the memory. */
  async #sorted(): Promise<Buffer> {
    const names = this.#names;
    const order = Array.from(names.keys());
    const compare = (one: number, other: number) => compareNames(names[one] as string, names[other] as string);
    const sorted = await inSlices(sortedSteps(order, compare));
    const run = await inSlices(copySteps(this.#bytes, [...this.#starts, this.#end], sorted));
    this.#names = [];
    this.#starts = [];
    this.#end = 0;
    return run;
  }

  async #flush(): Promise<void> {
    const run = await this.#sorted();
    try {
      if (this.#bytesInMemory > 0) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
      this.#file ??= await this.#open(this.#folder);
      await writeAll(this.#file.handle, run, this.#fileEnd);
      this.#runs.push({ from: this.#fileEnd, to: this.#fileEnd + run.length });
      this.#fileEnd += run.length;
    } catch (error) {
      this.#bytesInMemory += run.length;
      if (!isFullDisk(error) || this.#bytesInMemory > MAX_BYTES_ON_FULL_DISK) throw error;
      this.#runs.push({ bytes: run });
    }
  }
}

function* copySteps(bytes: Buffer, starts: readonly number[], order: readonly number[]): Steps<Buffer> {
  const run = Buffer.allocUnsafeSlow(starts.at(-1) as number);
  let end = 0;
  for (const [count, at] of order.entries()) {
    end += bytes.copy(run, end, starts[at], starts[at + 1]);
    if (count % COPIED_PER_STEP === 0) yield;
  }
  return run;
}

async function writeAll(handle: FileHandle, bytes: Buffer, from: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await handle.write(bytes, at, bytes.length - at, from + at)).bytesWritten;
  }
}

const inTurn = (one: Record, other: Record): number => compareNames(one.name, other.name) || one.run - other.run;

/** Moves the first reader, whose name has changed, to its position in the order. */
function moveBack(readers: RunReader[]): void {
  const first = readers[0] as RunReader;
  let low = 1;
  for (let high = readers.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if (inTurn(readers[middle] as RunReader, first) < 0) low = middle + 1;
    else high = middle;
  }
  readers.copyWithin(0, 1, low);
  readers[low - 1] = first;
}

export interface ScratchFile {
  readonly handle: FileHandle;
  close(): Promise<void>;
}

/**
 * Opens a temporary file below `folder`. Where the system allows it, the file is unlinked at once,
 * so that even a killed process leaves nothing behind.
 */
export async function openScratchFile(folder: string): Promise<ScratchFile> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = await mkdtemp(join(folder, "scratch-"));
  const remove = () => rm(path, { recursive: true, force: true });
  try {
    const handle = await open(join(path, "runs"), "wx+", 0o600);
    // Windows does not unlink open files.
    await remove().catch(() => {});
    return {
      handle,
      async close() {
        await handle.close();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
