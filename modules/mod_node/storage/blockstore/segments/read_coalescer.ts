/** Coalesces reads of blocks: those that are requested together and lie together are read in one go. */
import { WeightedSemaphore } from "../../../util/async/weighted_semaphore.ts";
import { allocUnsafe, type BufferPool, MIN_POOLED_BYTES } from "../buffer_pool.ts";
import { MAX_READING_BYTES } from "../store.ts";
import type { SegmentFile } from "./files.ts";
import type { BytesLocation } from "./format.ts";
import { InlineReads, WITH_KNOWN, WITH_OTHERS } from "./inline_reads.ts";

/** The files of segments, wherever they are: see `SegmentFiles`. */
export interface ReadableSegments {
  use<T>(segment: number, use: (file: Pick<SegmentFile, "read">) => Promise<T>): Promise<T>;
  /** A file from which these bytes can be read at once, without waiting for it to be opened. */
  ready(segment: number, offset: number, length: number): Pick<SegmentFile, "readInline"> | undefined;
}

interface PendingRead {
  readonly location: BytesLocation;
  readonly buffers: BufferPool | undefined;
  /** It was read before: the system has probably kept it in memory. */
  readonly isKnown: boolean;
  readonly resolve: (read: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/** Of one read. */
const MAX_READ_BYTES = 1024 * 1024;
/** Of one read of what was not read before, on this thread. */
const MAX_UNKNOWN_BYTES = 64 * 1024;
/** Bytes between two blocks that are read and dropped; the head of a section is shorter. */
const MAX_GAP = 256;
/** Receives the bytes between blocks, which nobody looks at. */
const gapBytes = new Uint8Array(MAX_GAP);
/** Bytes of an array that small blocks have in common, and of one read of such blocks. */
const SHARED_BYTES = 128 * 1024;
/** Bytes of such a read from which on they share a buffer of the pool, which is at most twice as long. */
const MIN_SHARED_BUFFER = 32 * 1024;

const endOf = ({ offset, length }: BytesLocation): number => offset + length;

const inStoredOrder = ({ location: one }: PendingRead, { location: other }: PendingRead): number =>
  one.segment - other.segment || one.offset - other.offset;

/** Small, and for somebody who does not keep it: it does not need an array of its own. */
const isShared = ({ location, buffers }: PendingRead): boolean =>
  buffers !== undefined && location.length < MIN_POOLED_BYTES;

export class ReadCoalescer {
  readonly #files: ReadableSegments;
  readonly #failed: (error: Error) => Error;
  #wanted: PendingRead[] = [];
  /** For small blocks; what stands before `#sharedFrom` is given away. */
  #shared = new Uint8Array(0);
  #sharedFrom = 0;
  readonly #known = new InlineReads(WITH_KNOWN);
  readonly #others = new InlineReads(WITH_OTHERS);
  readonly #room = new WeightedSemaphore(MAX_READING_BYTES);

  /** `failed` makes what a read rejects with of what the file system says. */
  constructor(files: ReadableSegments, failed: (error: Error) => Error) {
    this.#files = files;
    this.#failed = failed;
  }

  /** Gives the bytes that the file has of a block; one that is known was read before. For `buffers` see `BlockStore.get`. */
  read(location: BytesLocation, buffers: BufferPool | undefined, isKnown = false): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const wanted = { location, buffers, isKnown, resolve, reject };
      if (this.#wanted.push(wanted) === 1) queueMicrotask(() => this.#start());
    });
  }

  /**
   * Gives them to `give` at once, each with its index; those that the thread pool would have to read are left out. Each is to be
   * released to the pool once.
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
    // Apart, so that one block that has to be waited for holds up none that is known.
    const known = wanted.filter(({ isKnown }) => isKnown);
    const others = known.length === wanted.length ? [] : wanted.filter(({ isKnown }) => !isKnown);
    for (const run of runsOf(known)) if (!this.#readInline(run, this.#pooledTargetOf(run))) break;
    for (const run of runsOf(others, MAX_UNKNOWN_BYTES)) if (!this.#readInline(run, this.#pooledTargetOf(run))) return;
  }

  /**
   * A block that can be read now, into an array of its own or of `buffers`; undefined where the thread pool would have to, or
   * it is not all there.
   */
  readHere({ segment, offset, length }: BytesLocation, isKnown: boolean, buffers?: BufferPool): Uint8Array | undefined {
    const file = this.#inlineFile(segment, offset, length, isKnown);
    if (file?.readInline === undefined) return undefined;
    const bytes = buffers?.take(length) ?? allocUnsafe(length);
    try {
      const read = this.#inlineReads(isKnown).run(length, () => file.readInline?.([bytes], offset));
      if (read === length) return bytes;
    } catch {
      // The thread pool's read tells why.
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

  /** As `#targetOf`, in a buffer of the pool that all release, unless that would be far too long. */
  #pooledTargetOf(run: Run): Target {
    const length = lengthOf(run);
    const { buffers } = run[0];
    if (buffers === undefined || !isShared(run[0]) || length < MIN_SHARED_BUFFER) return this.#targetOf(run);
    return shared(run, buffers.take(length, run.length));
  }

  /** At once, or when others have been read: what thousands of readers want is not allocated all at a time. */
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

  /** False where the thread pool is to read, also for what cannot be read. */
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

  /** Bytes that small blocks are read into. */
  #take(length: number): Uint8Array {
    if (this.#sharedFrom + length > this.#shared.length) {
      this.#shared = new Uint8Array(Buffer.allocUnsafeSlow(Math.max(length, SHARED_BYTES)).buffer);
      this.#sharedFrom = 0;
    }
    this.#sharedFrom += length;
    return this.#shared.subarray(this.#sharedFrom - length, this.#sharedFrom);
  }
}

/** Those that are read in one go. */
type Run = readonly [PendingRead, ...PendingRead[]];

/** Sorts them. `mostShared`: bytes of a run of small ones. */
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

/** Whether a block is read in one go with those before it, which have so many bytes. */
function isNext(last: PendingRead, next: PendingRead, bytes: number, mostShared: number): boolean {
  const gap = next.location.segment === last.location.segment ? next.location.offset - endOf(last.location) : -1;
  const shared = isShared(next);
  const most = shared ? mostShared : MAX_READ_BYTES;
  return gap >= 0 && gap <= MAX_GAP && shared === isShared(last) && bytes + next.location.length <= most;
}

/** From the first byte of the first block to the last one of the last. */
function lengthOf(run: Run): number {
  return endOf((run.at(-1) as PendingRead).location) - run[0].location.offset;
}

/** What a run is read into, and what hands it out once so many bytes of it are there. */
interface Target {
  readonly parts: readonly Uint8Array[];
  readonly give: (read: number) => void;
}

/** Each block gets a view of `into`, which holds them as they stand in the file. */
function shared(run: Run, into: Uint8Array): Target {
  const start = run[0].location.offset;
  const give = (read: number) => {
    for (const { location, resolve } of run) {
      resolve(into.subarray(Math.min(read, location.offset - start), Math.min(read, endOf(location) - start)));
    }
  };
  return { parts: [into], give };
}

/** Each block gets an array of its own, or a buffer that is lent. */
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
