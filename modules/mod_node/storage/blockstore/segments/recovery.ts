/** Opens a store: the index catches up with the log, or is rebuilt from it. */
import type { SegmentFiles } from "./files.ts";
import { nameOf, offsetAt, type Position, positionAt, readRecord, segmentAt, segmentHeader } from "./format.ts";
import { IndexOverlay } from "./index_overlay.ts";
import { type FoundSection, isIntact, SectionReader } from "./section_reader.ts";
import type { SegmentIndex, State, Usage } from "./segment_index.ts";

/** Called with a sentence about something that had to be repaired. */
export type Notice = (text: string) => void;

export interface Recovered {
  readonly overlay: IndexOverlay;
  /** End of the log. */
  readonly end: Position;
  /** Of every segment. */
  readonly lengths: Map<number, number>;
}

/**
 * - Continues the log where the index ends, cuts off what was torn, and brings the rest into the index.
 * - Rebuilds an index that is missing, unfinished or contradicts the files, from all segments.
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
    notice(`the index of the blocks ${wrong}: it is made anew from ${segments.length} segments`);
    await index.clear();
    usage = new Map();
    state = undefined;
  }
  // Only an index of these very files knows which of them were to be removed.
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
    const offset = await replay(files, segment, from, { overlay, last, rebuilding, notice });
    lengths.set(segment, offset);
    end = positionAt(segment, offset);
    overlay.setLogEnd(end);
  }
  if (end > state.position) {
    await overlay.apply(end).catch((error: Error) => {
      if (rebuilding) throw error;
      // On a full disk the store can at least be read; the log has everything.
      notice(`the index of the blocks could not be brought up to date: ${error.message}`);
    });
  }
  if (rebuilding) {
    await overlay.finish();
    notice(`the index of the blocks is made: ${overlay.blocks} blocks`);
  }
  return { overlay, end, lengths };
}

/** Why the index cannot belong to these files; undefined when it can. */
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
    if (actual === undefined) return `knows a segment that is not there (${nameOf(segment)})`;
    if (actual < length) return `knows more of ${nameOf(segment)} than there is`;
  }
  const strange = [...lengths.keys()].find((segment) => segment < segmentAt(state.position) && !usage.has(segment));
  return strange === undefined ? undefined : `does not know ${nameOf(strange)}`;
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
  return same ? undefined : "is not that of these segments";
}

interface Replay {
  readonly overlay: IndexOverlay;
  /** The last segment, the only one that can be torn: earlier ones were durable when it began. */
  readonly last: boolean;
  readonly rebuilding: boolean;
  readonly notice: Notice;
}

/** Brings the statements of a segment from an offset on into the overlay; gives the length that is left of the file. */
function replay(files: SegmentFiles, segment: number, from: number, options: Replay): Promise<number> {
  const { overlay, last, rebuilding, notice } = options;
  const name = nameOf(segment);
  return files.use(segment, async (file) => {
    const size = await file.size();
    if (size < segmentHeader.length) {
      if (last) await files.begin(segment);
      return segmentHeader.length;
    }
    // What is read here will be in the index, so it must be durable first.
    await file.sync();
    const reader = new SectionReader(file, from, size, { withData: last });
    let end = from;
    let spoilt = 0;
    for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
      if (last && !(await isIntact(found))) {
        spoilt += 1;
        continue;
      }
      end = reader.at;
      applySection(overlay, found, positionAt(segment, end), segment, rebuilding);
      if (overlay.isCrowded) await overlay.apply(positionAt(segment, end));
    }
    if (!last) {
      if (reader.damage !== undefined) {
        notice(`${name} cannot be read from byte ${reader.at} on (${reader.damage}): blocks behind it are missing`);
      }
      return size;
    }
    if (end < size) {
      notice(`${name} ended in a write that was not finished: ${size - end} bytes are cut off`);
      await file.truncate(end);
      await file.sync();
    }
    if (spoilt > 0 && end > from) notice(`${name} has sections whose bytes are not those of their CIDs: left out`);
    return end;
  });
}

function applySection(
  overlay: IndexOverlay,
  found: FoundSection,
  end: Position,
  segment: number,
  rebuilding: boolean,
): void {
  const statements = readRecord(found);
  if (statements === undefined) {
    const { form, headLength: head, length, offset } = found;
    const old = overlay.find(found.multihash);
    const forms = old?.forms.includes(form) ? old.forms : [...(old?.forms ?? []), form];
    // A copy: the view would keep much more alive.
    overlay.set(found.multihash.slice(), old, { forms, location: { segment, offset, length, headLength: head } }, end);
    return;
  }
  overlay.addRecord(
    found.headLength + found.length,
    statements.every(({ forms }) => forms.length === 0),
    end,
  );
  for (const { multihash, forms } of statements) {
    const old = overlay.find(multihash);
    if (forms.length === 0) {
      if (old !== undefined) overlay.set(multihash, old, undefined, end);
    } else if (old !== undefined || rebuilding) {
      // In a rebuild the bytes may come later, from the segment that they were moved to.
      overlay.set(multihash, old, { forms, location: old?.location }, end);
    }
  }
}
