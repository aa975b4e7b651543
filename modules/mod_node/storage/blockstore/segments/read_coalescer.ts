/** Coalesces reads of blocks: those that are requested together and lie together are read in one go. */
import type { SegmentFile, SegmentFiles } from "./files.ts";
import type { BlockLocation } from "./format.ts";

interface PendingRead {
  readonly location: BlockLocation;
  readonly into: Uint8Array;
  readonly resolve: (read: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/** Of one read. */
const MAX_READ_BYTES = 1024 * 1024;
/** Bytes between two blocks that are read and dropped; the head of a section is shorter. */
const MAX_GAP = 256;
/** Receives the bytes between blocks, which nobody looks at. */
const gapBytes = new Uint8Array(MAX_GAP);

const endOf = ({ offset, length }: BlockLocation): number => offset + length;

export class ReadCoalescer {
  readonly #files: SegmentFiles;
  #wanted: PendingRead[] = [];

  constructor(files: SegmentFiles) {
    this.#files = files;
  }

  /** Reads a block into `into`, which has its length, and gives the bytes that the file has of it. */
  read(location: BlockLocation, into: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.#wanted.push({ location, into, resolve, reject }) === 1) queueMicrotask(() => this.#start());
    });
  }

  #start(): void {
    let run: PendingRead[] = [];
    let bytes = 0;
    for (const wanted of this.#wanted) {
      const { location } = wanted;
      const last = run.at(-1)?.location;
      const gap = last?.segment === location.segment ? location.offset - endOf(last) : -1;
      if (last !== undefined && (gap < 0 || gap > MAX_GAP || bytes + location.length > MAX_READ_BYTES)) {
        this.#read(run);
        run = [];
        bytes = 0;
      }
      run.push(wanted);
      bytes += location.length;
    }
    this.#wanted = [];
    this.#read(run);
  }

  #read(run: readonly PendingRead[]): void {
    const [{ location: first }] = run as readonly [PendingRead];
    this.#files
      .use(first.segment, (file) => readRun(file, run))
      .then(
        (end) => {
          for (const { location, into, resolve } of run) {
            resolve(into.subarray(0, Math.max(0, Math.min(location.length, end - location.offset))));
          }
        },
        (error: Error) => {
          for (const { reject } of run) reject(error);
        },
      );
  }
}

/** Resolves with the offset in the file up to which there were bytes to read. */
async function readRun(file: SegmentFile, run: readonly PendingRead[]): Promise<number> {
  const [{ location: first }] = run as readonly [PendingRead];
  const parts: Uint8Array[] = [];
  let at = first.offset;
  for (const { location, into } of run) {
    if (location.offset > at) parts.push(gapBytes.subarray(0, location.offset - at));
    parts.push(into);
    at = endOf(location);
  }
  return first.offset + (await file.read(parts, first.offset));
}
