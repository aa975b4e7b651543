/**
 * Reads the records of Pebble's manifests and logs.
 *
 * Source: the package documentation of Pebble's `record`. A file consists of blocks of 32 KiB,
 * which contain chunks. A chunk has a checksum (4 bytes), a length (2) and a kind (1); in logs also
 * the number of the log (4), and in newer logs the offset up to which the log is durable (8); then
 * the data. A record is one chunk, or a first one, middle ones and a last one. Pebble reuses log
 * files: chunks with another number belong to an earlier log.
 */
import { DatabaseDamaged, maskedCrc } from "../lsm/fields.ts";

const BLOCK = 32 * 1024;
const CRC_LENGTH = 6;
/**
 * Header lengths, by `Math.floor((kind - 1) / 4)`: in manifests, in logs, and in logs that record
 * which part is durable.
 */
const headLengths = [7, 11, 19] as const;
const whole = 0;
const first = 1;
const last = 3;

export interface JournalOptions {
  /** Number of the log; undefined for a manifest. */
  readonly log?: number | undefined;
  /** Whether a crash may have cut off the end. */
  readonly mayEndEarly: boolean;
}

interface Chunk {
  /** Position in the record: whole, first, middle or last as 0 to 3. */
  readonly position: number;
  readonly data: Buffer;
  readonly end: number;
}

/**
 * Yields the records, and undefined from time to time, so that the caller can pause. `path` is for
 * errors.
 * @throws DatabaseDamaged
 */
export function* journalRecords(
  path: string,
  journal: Buffer,
  options: JournalOptions,
): Generator<Buffer | undefined, void, undefined> {
  let pieces: Buffer[] | undefined;
  for (let at = 0; at < journal.length; ) {
    const left = Math.min(BLOCK - (at % BLOCK), journal.length - at);
    if (isPadding(journal, at, left)) {
      at += left;
      continue;
    }
    const chunk = chunkAt(journal, at, options.log);
    if (chunk === "end" && pieces === undefined) return;
    if (chunk === "end" || chunk === undefined) {
      if (!options.mayEndEarly || (yield* hasChunkAfter(journal, at, options.log))) {
        throw new DatabaseDamaged(`${path} is damaged: the record at ${at} is invalid`, path);
      }
      return;
    }
    yield;
    if (chunk.position === whole || chunk.position === first) pieces = [];
    pieces?.push(chunk.data);
    if (pieces !== undefined && (chunk.position === whole || chunk.position === last)) {
      yield Buffer.concat(pieces);
      pieces = undefined;
    }
    at = chunk.end;
  }
  if (pieces !== undefined && !options.mayEndEarly) throw new DatabaseDamaged(`${path} is cut off`, path);
}

/** The end of a block is zeros if it is too short for a header. */
function isPadding(journal: Buffer, at: number, left: number): boolean {
  const reachesBlockEnd = (at + left) % BLOCK === 0;
  return reachesBlockEnd && left < headLengths[2] && journal.subarray(at, at + left).every((byte) => byte === 0);
}

/**
 * Returns the chunk at an offset, and undefined if there is none. "end" is the mark of a closed
 * log.
 */
function chunkAt(journal: Buffer, at: number, log: number | undefined): Chunk | "end" | undefined {
  const left = Math.min(BLOCK - (at % BLOCK), journal.length - at);
  if (left < headLengths[0]) return undefined;
  const kind = journal.readUInt8(at + CRC_LENGTH) - 1;
  const head = headLengths[Math.floor(kind / 4)];
  if (head === undefined || head > left) return undefined;
  if (head > headLengths[0]) {
    const number = journal.readUInt32LE(at + headLengths[0]);
    if (number === (log ?? 0) + 1) return "end";
    if (number !== log) return undefined;
  }
  const end = at + head + journal.readUInt16LE(at + 4);
  if (end > at + left) return undefined;
  if (maskedCrc(journal.subarray(at + CRC_LENGTH, end)) !== journal.readUInt32LE(at)) return undefined;
  return { position: kind % 4, data: journal.subarray(at + head, end), end };
}

/**
 * Whether a chunk of this log follows the invalid data. In that case the log is damaged; otherwise
 * it ends here. A chunk may begin anywhere in the same block; further blocks begin with a chunk.
 */
function* hasChunkAfter(
  journal: Buffer,
  at: number,
  log: number | undefined,
): Generator<undefined, boolean, undefined> {
  const blockEnd = Math.ceil((at + 1) / BLOCK) * BLOCK;
  for (let next = at + 1; next + headLengths[0] <= journal.length; next += next < blockEnd ? 1 : BLOCK) {
    yield;
    const chunk = chunkAt(journal, next, log);
    if (chunk !== undefined && chunk !== "end") return true;
  }
  return false;
}
