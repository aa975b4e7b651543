/**
 * Saves bytes that belong to no block in `lost+found` next to the segments. Nothing in it is ever
 * removed.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type SegmentFile, type SegmentFs, writeAll } from "./files.ts";
import { nameOf } from "./format.ts";

export const lostAndFound = "lost+found";
const PIECE_BYTES = 1024 * 1024;

/** A range of a segment. */
export interface Range {
  readonly segment: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Copies a range of a segment to its own file, without the zeros at its end. Durable when the
 * promise resolves. Resolves with the path below the folder of the segments,
 * `lost+found/00000003.car-FROM-LENGTH-DIGEST`, or undefined when there are only zeros. A range
 * that already has a copy is not copied again.
 *
 * @throws errors of the file system; no partial copy is left then
 */
export async function setAside(
  fs: SegmentFs,
  folder: string,
  file: SegmentFile,
  { segment, from, to }: Range,
): Promise<string | undefined> {
  const end = await endOfContent(file, from, to);
  if (end === from) return undefined;
  const digest = createHash("sha256");
  for await (const piece of piecesOf(file, from, end)) digest.update(piece);
  const name = `${nameOf(segment)}-${from}-${end - from}-${digest.digest("hex").slice(0, 8)}`;
  const target = join(folder, lostAndFound);
  const path = join(target, name);
  const isThere = (await fs.list(target)).includes(name) && (await fs.size(path)) === end - from;
  if (!isThere) {
    const copy = await fs.open(path, true);
    try {
      let at = 0;
      for await (const piece of piecesOf(file, from, end)) {
        await writeAll(copy, [piece], at);
        at += piece.length;
      }
      await copy.sync();
    } catch (error) {
      await fs.remove(path).catch(() => {});
      throw error;
    } finally {
      await copy.close();
    }
    await fs.syncFolder(target);
    await fs.syncFolder(folder);
  }
  return `${lostAndFound}/${name}`;
}

async function* piecesOf(file: SegmentFile, from: number, to: number): AsyncGenerator<Uint8Array> {
  for (let at = from; at < to; at += PIECE_BYTES) {
    const piece = new Uint8Array(Math.min(PIECE_BYTES, to - at));
    const read = await file.read([piece], at);
    yield piece.subarray(0, read);
  }
}

/** Returns the offset after the last byte of a range that is not zero. */
async function endOfContent(file: SegmentFile, from: number, to: number): Promise<number> {
  for (let end = to; end > from; ) {
    const start = Math.max(from, end - PIECE_BYTES);
    const piece = new Uint8Array(end - start);
    const read = await file.read([piece], start);
    for (let at = read; at > 0; at -= 1) if (piece[at - 1] !== 0) return start + at;
    end = start;
  }
  return from;
}
