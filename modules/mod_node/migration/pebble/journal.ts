/**
 * The records of Pebble's manifests and logs.
 *
 * Source: the package documentation of Pebble's `record`. Files are blocks of 32 KiB with chunks:
 * checksum (4 bytes), length (2), kind (1), of logs their number (4), of newer logs how far they
 * were safely on the disk (8); then the data. A record is one chunk, or a first, middle ones and a
 * last one. Log files are used again: chunks of another number are of an earlier log.
 */
import { DatabaseDamaged, maskedCrc } from "../lsm/fields.ts";

const BLOCK = 32 * 1024;
const CRC_LENGTH = 6;
/**
 * Lengths of heads, by `Math.floor((kind - 1) / 4)`: of manifests, of logs, and of logs that tell
 * what was synced.
 */
const headLengths = [7, 11, 19] as const;
const whole = 0;
const first = 1;
const last = 3;

export interface JournalOptions {
  /** The number of a log. */
  readonly log?: number | undefined;
  /** A crash may have cut off its end. */
  readonly mayEndEarly: boolean;
}

interface Chunk {
  /** Whole, first, middle or last: 0 to 3. */
  readonly position: number;
  readonly data: Buffer;
  readonly end: number;
}

/**
 * Its records; undefined now and then in between, for a pause. `path` is for errors. @throws
 * DatabaseDamaged
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
        throw new DatabaseDamaged(`${path} is damaged: the record at ${at} is wrong`, path);
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

/** The rest of a block into which no head fits is zeros. */
function isPadding(journal: Buffer, at: number, left: number): boolean {
  const reachesBlockEnd = (at + left) % BLOCK === 0;
  return reachesBlockEnd && left < headLengths[2] && journal.subarray(at, at + left).every((byte) => byte === 0);
}

/** Undefined where none is; "end" is the mark of a log that was closed. */
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
 * Whether something of this log is behind what is wrong: then it is damage and not an end. In the
 * same block it may be anywhere; further blocks begin with a chunk.
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
