/**
 * Coalesces reads of blocks: blocks that are requested together and are adjacent are read together.
 */
import { WeightedSemaphore } from "../../../util/async/weighted_semaphore.ts";
import { allocUnsafe, type BufferPool, MIN_POOLED_BYTES } from "../buffer_pool.ts";
import { MAX_READING_BYTES } from "../store.ts";
import type { SegmentFile } from "./files.ts";
import type { BytesLocation } from "./format.ts";
import { InlineReads, WITH_KNOWN, WITH_OTHERS } from "./inline_reads.ts";

/** The files of segments on the disk or elsewhere; see `SegmentFiles`. */
export interface ReadableSegments {
  use<T>(segment: number, use: (file: Pick<SegmentFile, "read">) => Promise<T>): Promise<T>;
  /**
   * Returns a file from which these bytes can be read synchronously; undefined when it is not open.
   */
  ready(segment: number, offset: number, length: number): Pick<SegmentFile, "readInline"> | undefined;
}

interface PendingRead {
  readonly location: BytesLocation;
  readonly buffers: BufferPool | undefined;
  /** Whether the block was read before, so that the system has probably cached it. */
  readonly isKnown: boolean;
  readonly resolve: (read: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/** Maximum bytes of one read. */
const MAX_READ_BYTES = 1024 * 1024;
/** Maximum bytes of one read on the main thread of blocks that were not read before. */
const MAX_UNKNOWN_BYTES = 64 * 1024;
/** Maximum bytes between two blocks that are read together. The head of a section is shorter. */
const MAX_GAP = 256;
/** Receives the bytes between blocks, which are not used. */
const gapBytes = new Uint8Array(MAX_GAP);
/** Length of an array that small blocks share, and maximum length of one read of such blocks. */
const SHARED_BYTES = 128 * 1024;
/**
 * From this length on, the small blocks of a read share a buffer of the pool, which is at most
 * twice as long.
 */
const MIN_SHARED_BUFFER = 32 * 1024;

const endOf = ({ offset, length }: BytesLocation): number => offset + length;

const inStoredOrder = ({ location: one }: PendingRead, { location: other }: PendingRead): number =>
  one.segment - other.segment || one.offset - other.offset;

/**
 * Whether a block is small and its reader does not retain it, so that it needs no array of its own.
 */
const isShared = ({ location, buffers }: PendingRead): boolean =>
  buffers !== undefined && location.length < MIN_POOLED_BYTES;

export class ReadCoalescer {
  readonly #files: ReadableSegments;
  readonly #failed: (error: Error) => Error;
  #wanted: PendingRead[] = [];
  /** The current array for small blocks; the bytes before `#sharedFrom` are in use. */
  #shared = new Uint8Array(0);
  #sharedFrom = 0;
  readonly #known = new InlineReads(WITH_KNOWN);
  readonly #others = new InlineReads(WITH_OTHERS);
  readonly #room = new WeightedSemaphore(MAX_READING_BYTES);

  /** `failed` converts errors of the file system into the errors of a read. */
  constructor(files: ReadableSegments, failed: (error: Error) => Error) {
    this.#files = files;
    this.#failed = failed;
  }

  /**
   * Reads the bytes of a block from its file. `isKnown` says that it was read before.
   * `BlockStore.get` explains `buffers`.
   */
  read(location: BytesLocation, buffers: BufferPool | undefined, isKnown = false): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const wanted = { location, buffers, isKnown, resolve, reject };
      if (this.#wanted.push(wanted) === 1) queueMicrotask(() => this.#start());
    });
  }

  /**
   * Passes blocks that can be read synchronously to `give`, each with its index. Leaves out blocks
   * that the thread pool would have to read. The caller releases each block to the pool once.
   */
  readNow(
    blocks: readonly ({ readonly location: BytesLocation; readonly isKnown: boolean } | undefined)[],
    buffers: BufferPool | undefined,
    give: (index: number, read: Uint8Array) => void,
  ): void {
    const wanted: PendingRead[] = [];
    for (const [index, block] of blocks.entries()) {
      if (block === undefined) continue;
      const resolve = (read: Uint8Array) => give(index, read);
      wanted.push({ ...block, buffers, resolve, reject: () => undefined });
    }
    // Blocks that were not read before are read separately, so that a slow one does not delay the
    // others.
    const known = wanted.filter(({ isKnown }) => isKnown);
    const others = known.length === wanted.length ? [] : wanted.filter(({ isKnown }) => !isKnown);
    for (const run of runsOf(known)) if (!this.#readInline(run, this.#pooledTargetOf(run))) break;
    for (const run of runsOf(others, MAX_UNKNOWN_BYTES)) if (!this.#readInline(run, this.#pooledTargetOf(run))) return;
  }

  /**
   * Reads a block synchronously into a new array or a buffer of `buffers`. Returns undefined when
   * the thread pool would have to read it, or when the file ends too early.
   */
  readHere({ segment, offset, length }: BytesLocation, isKnown: boolean, buffers?: BufferPool): Uint8Array | undefined {
    const file = this.#inlineFile(segment, offset, length, isKnown);
    if (file?.readInline === undefined) return undefined;
    const bytes = buffers?.take(length) ?? allocUnsafe(length);
    try {
      const read = this.#inlineReads(isKnown).run(length, () => file.readInline?.([bytes], offset));
      if (read === length) return bytes;
    } catch {
      // The read in the thread pool reports the reason.
    }
    buffers?.release(bytes);
    return undefined;
  }

  #start(): void {
    const wanted = this.#wanted;
    this.#wanted = [];
    for (const run of runsOf(wanted)) this.#read(run);
  }

  #targetOf(run: Run): Target {
    return isShared(run[0]) ? shared(run, this.#take(lengthOf(run))) : apart(run);
  }

  /**
   * Like `#targetOf`, but uses a buffer of the pool that all blocks share and release, unless it
   * would be far too long.
   */
  #pooledTargetOf(run: Run): Target {
    const length = lengthOf(run);
    const { buffers } = run[0];
    if (buffers === undefined || !isShared(run[0]) || length < MIN_SHARED_BUFFER) return this.#targetOf(run);
    return shared(run, buffers.take(length, run.length));
  }

  /** Reads now or after other reads. This limits the memory when thousands of readers wait. */
  #read(run: Run): void {
    const length = lengthOf(run);
    const waiting = this.#room.acquire(length);
    if (waiting === undefined) this.#readInTurn(run, length);
    else waiting.then(() => this.#readInTurn(run, length));
  }

  #readInTurn(run: Run, length: number): void {
    const { segment, offset } = run[0].location;
    const target = this.#targetOf(run);
    if (this.#readInline(run, target)) {
      this.#room.release(length);
      return;
    }
    const { parts, give } = target;
    const began = performance.now();
    const reading = this.#files.use(segment, (file) => file.read(parts, offset));
    const done = (read: number) => {
      this.#others.pooled(began);
      give(read);
    };
    reading
      .then(done, (error: Error) => {
        const failed = this.#failed(error);
        for (const { reject } of run) reject(failed);
      })
      .finally(() => this.#room.release(length));
  }

  /** Reads synchronously; false when the thread pool must read, or the read fails. */
  #readInline(run: Run, { parts, give }: Target): boolean {
    const { segment, offset } = run[0].location;
    const length = lengthOf(run);
    const isKnown = run.every((wanted) => wanted.isKnown);
    const file = this.#inlineFile(segment, offset, length, isKnown);
    if (file?.readInline === undefined) return false;
    try {
      const read = this.#inlineReads(isKnown).run(length, () => file.readInline?.(parts, offset));
      if (read !== undefined) give(read);
      return read !== undefined;
    } catch {
      return false;
    }
  }

  #inlineFile(segment: number, offset: number, length: number, isKnown: boolean) {
    return isKnown || length <= MAX_UNKNOWN_BYTES ? this.#files.ready(segment, offset, length) : undefined;
  }

  #inlineReads = (isKnown: boolean): InlineReads => (isKnown ? this.#known : this.#others);

  /** Allocates bytes for small blocks. */
  #take(length: number): Uint8Array {
    if (this.#sharedFrom + length > this.#shared.length) {
      this.#shared = new Uint8Array(Buffer.allocUnsafeSlow(Math.max(length, SHARED_BYTES)).buffer);
      this.#sharedFrom = 0;
    }
    this.#sharedFrom += length;
    return this.#shared.subarray(this.#sharedFrom - length, this.#sharedFrom);
  }
}

/** Blocks that are read together. */
type Run = readonly [PendingRead, ...PendingRead[]];

/**
 * Sorts reads and groups them into runs. `mostShared` is the maximum length of a run of small
 * blocks.
 */
function* runsOf(all: PendingRead[], mostShared = SHARED_BYTES): Generator<Run, void, undefined> {
  let run: PendingRead[] = [];
  let bytes = 0;
  for (const wanted of all.sort(inStoredOrder)) {
    const last = run.at(-1);
    if (last !== undefined && !isNext(last, wanted, bytes, mostShared)) {
      yield run as unknown as Run;
      run = [];
      bytes = 0;
    }
    run.push(wanted);
    bytes += wanted.location.length;
  }
  if (run.length > 0) yield run as unknown as Run;
}

/** Whether a block belongs to the run of `last`, which has `bytes` bytes. */
function isNext(last: PendingRead, next: PendingRead, bytes: number, mostShared: number): boolean {
  const gap = next.location.segment === last.location.segment ? next.location.offset - endOf(last.location) : -1;
  const shared = isShared(next);
  const most = shared ? mostShared : MAX_READ_BYTES;
  return gap >= 0 && gap <= MAX_GAP && shared === isShared(last) && bytes + next.location.length <= most;
}

/**
 * Returns the distance from the first byte of the first block to the last byte of the last block.
 */
function lengthOf(run: Run): number {
  return endOf((run.at(-1) as PendingRead).location) - run[0].location.offset;
}

/** The arrays that a run is read into, and a function that distributes the `read` bytes. */
interface Target {
  readonly parts: readonly Uint8Array[];
  readonly give: (read: number) => void;
}

/** Gives each block a view of `into`, which has the content of the file. */
function shared(run: Run, into: Uint8Array): Target {
  const start = run[0].location.offset;
  const give = (read: number) => {
    for (const { location, resolve } of run) {
      resolve(into.subarray(Math.min(read, location.offset - start), Math.min(read, endOf(location) - start)));
    }
  };
  return { parts: [into], give };
}

/** Gives each block an array of its own or a buffer of the pool. */
function apart(run: Run): Target {
  const start = run[0].location.offset;
  const blocks = run.map(({ location: { length }, buffers }) => buffers?.take(length) ?? allocUnsafe(length));
  const parts: Uint8Array[] = [];
  let at = start;
  for (const [index, { location }] of run.entries()) {
    if (location.offset > at) parts.push(gapBytes.subarray(0, location.offset - at));
    parts.push(blocks[index] as Uint8Array);
    at = endOf(location);
  }
  const give = (read: number) => {
    const end = start + read;
    for (const [index, { location, resolve }] of run.entries()) {
      resolve((blocks[index] as Uint8Array).subarray(0, Math.max(0, Math.min(location.length, end - location.offset))));
    }
  };
  return { parts, give };
}
