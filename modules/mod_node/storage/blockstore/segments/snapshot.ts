/** A snapshot of the segments for a caller that copies them. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotFile, StoreSnapshot } from "../store.ts";
import type { SegmentFile, SegmentFiles } from "./files.ts";
import { nameOf } from "./format.ts";
import type { Log } from "./log.ts";

const READ_BYTES = 1024 * 1024;

/**
 * Opens the segments up to the end of the log at the time of the call; data that is appended later
 * is left out. Each segment is opened a second time, so that it stays readable after compaction has
 * removed it. The disk gets its space back after `release`.
 */
export function snapshotSegments(files: SegmentFiles, log: Log): Promise<StoreSnapshot> {
  const lengths = [...log.lengths].sort(([one], [other]) => one - other);
  const opened: SegmentFile[] = [];
  const release = async () => {
    await Promise.all(opened.splice(0).map((file) => file.close()));
  };
  return files.keep(async () => {
    try {
      await log.sync();
      const snapshot: SnapshotFile[] = [];
      for (const [segment, length] of lengths) {
        const file = await files.openOwn(segment);
        opened.push(file);
        const name = nameOf(segment);
        const { ino, mtimeMs } = await stat(join(files.folder, name));
        const state = `${length} ${mtimeMs} ${ino}`;
        snapshot.push({ name, length, state, isGrowing: true, read: (from) => content(file, from, length) });
      }
      return { files: snapshot, bytes: lengths.reduce((sum, [, length]) => sum + length, 0), release };
    } catch (error) {
      await release();
      throw error;
    }
  });
}

async function* content(file: SegmentFile, from: number, end: number): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(Math.min(READ_BYTES, Math.max(0, end - from)));
  for (let at = from; at < end; ) {
    const read = await file.read([buffer.subarray(0, Math.min(buffer.length, end - at))], at);
    if (read === 0) throw new Error(`the segment ends at byte ${at}, before its end at ${end}`);
    yield buffer.subarray(0, read);
    at += read;
  }
}
