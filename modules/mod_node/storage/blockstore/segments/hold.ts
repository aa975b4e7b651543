/** The segments as they are at one moment, for whoever copies them. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { HeldFile, HeldFiles } from "../store.ts";
import type { SegmentFile, SegmentFiles } from "./files.ts";
import { nameOf } from "./format.ts";
import type { Log } from "./log.ts";

const READ_BYTES = 1024 * 1024;

/**
 * Up to the end that the log has at the call: what is appended later is left out. Each segment is opened once more, so
 * that its bytes are there after compaction has removed it; its space comes back to the disk with `release`.
 */
export function holdSegments(files: SegmentFiles, log: Log): Promise<HeldFiles> {
  const lengths = [...log.lengths].sort(([one], [other]) => one - other);
  const opened: SegmentFile[] = [];
  const release = async () => {
    await Promise.all(opened.splice(0).map((file) => file.close()));
  };
  return files.keep(async () => {
    try {
      await log.sync();
      const held: HeldFile[] = [];
      for (const [segment, length] of lengths) {
        const file = await files.openOwn(segment);
        opened.push(file);
        const name = nameOf(segment);
        const { ino, mtimeMs } = await stat(join(files.folder, name));
        const state = `${length} ${mtimeMs} ${ino}`;
        held.push({ name, length, state, isGrowing: true, read: (from) => content(file, from, length) });
      }
      return { files: held, bytes: lengths.reduce((sum, [, length]) => sum + length, 0), release };
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
