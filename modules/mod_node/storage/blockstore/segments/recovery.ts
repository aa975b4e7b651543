/** Opens a store: updates the index from the log or rebuilds it. */

import { join } from "node:path";
import { counted } from "../../../util/counted.ts";
import { failure } from "../../../util/errors.ts";
import type { SegmentFiles } from "./files.ts";
import { nameOf, offsetAt, type Position, positionAt, segmentAt, segmentHeader } from "./format.ts";
import { IndexOverlay } from "./index_overlay.ts";
import { type Notice, replay } from "./replay.ts";
import type { SegmentIndex, State, Usage } from "./segment_index.ts";

export interface Recovered {
  readonly overlay: IndexOverlay;
  /** End of the log. */
  readonly end: Position;
  /** Lengths of all segments. */
  readonly lengths: Map<number, number>;
}

/**
 * Prepares a store for use:
 *
 * - Continues the log where the index ends, sets torn data aside, and writes the rest to the index.
 * - Rebuilds an index from all segments when it is missing, incomplete or contradicts the files.
 * - Completes a compaction that was about to remove a segment.
 */
export async function recover(files: SegmentFiles, index: SegmentIndex, notice: Notice): Promise<Recovered> {
  let { state, usage } = index.load() ?? { state: undefined, usage: new Map<number, Usage>() };
  let segments = await files.list();
  const lengths = new Map<number, number>();
  for (const segment of segments) lengths.set(segment, await files.size(segment));

  const lastBytes = (position: Position) => readLast(files, position);
  const wrong = contradiction(state, usage, lengths) ?? (await whyOtherLog(state, lastBytes));
  const rebuilding = wrong !== undefined;
  if (rebuilding) {
    notice(`the index of the blocks ${wrong}: rebuilding it from ${counted(segments.length, "segment")}`);
    await index.clear();
    usage = new Map();
    state = undefined;
  }
  // The marks are only valid in an index of these files.
  const dropping = [...usage].filter(([, used]) => used.dropping).map(([segment]) => segment);
  for (const segment of dropping) {
    await files.remove(segment);
    lengths.delete(segment);
  }
  segments = segments.filter((segment) => lengths.has(segment));
  const first = segments[0] ?? 1;
  state ??= { position: positionAt(first, segmentHeader.length), blocks: 0, rebuilding, last: new Uint8Array(0) };
  const overlay = new IndexOverlay(index, { state, usage }, lastBytes);
  for (const segment of dropping) await overlay.mark(segment, undefined);

  if (segments.length === 0) {
    await files.syncParent();
    await files.begin(first);
    lengths.set(first, segmentHeader.length);
    await index.write({ state });
  }
  let end = state.position;
  for (const segment of segments.filter((segment) => segment >= segmentAt(end))) {
    const from = segment === segmentAt(state.position) ? offsetAt(state.position) : segmentHeader.length;
    const last = segment === segments.at(-1);
    const offset = await replay(files, segment, from, { overlay, last, rebuilding, notice }).catch((error) => {
      throw unreadable(error, files, segment);
    });
    lengths.set(segment, offset);
    end = positionAt(segment, offset);
    overlay.setLogEnd(end);
  }
  if (end > state.position) {
    await overlay.apply(end).catch((error: Error) => {
      if (rebuilding) throw error;
      // On a full disk, the store is at least readable. The log has everything.
      notice(`the index of the blocks could not be updated: ${error.message}`);
    });
  }
  if (rebuilding) {
    await overlay.finish();
    notice(`the index of the blocks is rebuilt: ${counted(overlay.blocks, "block")}`);
  }
  return { overlay, end, lengths };
}

/** Adds the file and a remedy to an error of the disk, which names neither. */
function unreadable(error: NodeJS.ErrnoException, files: SegmentFiles, segment: number): Error {
  if (error.code !== "EIO") return error;
  return failure("SEGMENT_UNREADABLE", { path: join(files.folder, nameOf(segment)), reason: error.message }, error);
}

/** Returns why the index cannot belong to these files; undefined when it can. */
function contradiction(
  state: State | undefined,
  usage: ReadonlyMap<number, Usage>,
  lengths: ReadonlyMap<number, number>,
): string | undefined {
  if (state === undefined) return lengths.size === 0 ? undefined : "is missing";
  if (state.rebuilding) return "was not finished";
  const known = [...usage].filter(([, { dropping }]) => !dropping);
  const reached: [number, number][] = known.map(([segment, { length }]) => [segment, length]);
  for (const [segment, length] of [...reached, [segmentAt(state.position), offsetAt(state.position)] as const]) {
    const actual = lengths.get(segment);
    if (actual === undefined) return `contains a missing segment (${nameOf(segment)})`;
    if (actual < length) return `covers more of ${nameOf(segment)} than exists`;
  }
  const strange = [...lengths.keys()].find((segment) => segment < segmentAt(state.position) && !usage.has(segment));
  return strange === undefined ? undefined : `lacks ${nameOf(strange)}`;
}

const lastLength = 32;

function readLast(files: SegmentFiles, position: Position): Promise<Uint8Array> {
  const bytes = new Uint8Array(Math.min(lastLength, offsetAt(position)));
  return files.use(segmentAt(position), async (file) => {
    await file.read([bytes], offsetAt(position) - bytes.length);
    return bytes;
  });
}

async function whyOtherLog(
  state: State | undefined,
  lastBytes: (position: Position) => Promise<Uint8Array>,
): Promise<string | undefined> {
  if (state === undefined || state.last.length === 0) return undefined;
  const same = Buffer.compare(await lastBytes(state.position), state.last) === 0;
  return same ? undefined : "does not belong to these segments";
}
