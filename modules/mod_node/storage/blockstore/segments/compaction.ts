/**
 * Reclaims the space of dead bytes: moves the live content of a segment to the end of the log and
 * removes the file of the segment.
 */

import { TimeSlices } from "../../../util/async/steps.ts";
import type { SegmentFiles } from "./files.ts";
import {
  cidOf,
  isRecord,
  nameOf,
  readRecord,
  recordSections,
  type Statement,
  segmentAt,
  segmentHeader,
} from "./format.ts";
import type { IndexOverlay } from "./index_overlay.ts";
import type { Log } from "./log.ts";
import { setAside } from "./lost_and_found.ts";
import type { Notice } from "./replay.ts";
import { type Damage, salvage } from "./salvage.ts";
import { type FoundSection, isIntact, SectionReader } from "./section_reader.ts";
import { unused } from "./segment_index.ts";

export interface CompactionDeps {
  readonly files: SegmentFiles;
  readonly overlay: IndexOverlay;
  readonly log: Log;
  readonly notice: Notice;
  /** Throws when compaction must end. */
  readonly check: () => void;
  /** Whether the disk has room for that many more bytes. */
  readonly fits: (bytes: number) => Promise<boolean>;
}

/** A segment with a smaller share of live bytes is rewritten. */
const MIN_USED_SHARE = 0.6;
/**
 * Rewrites one segment after the other, so that only the space of one segment is needed. The oldest
 * comes first, because only the oldest can drop its tombstones. Compaction may end at any point,
 * even by a fault: moved content is then in the log twice, and the later position counts.
 */
export async function compactSegments(parts: CompactionDeps): Promise<void> {
  const { overlay, log } = parts;
  await syncIndex(parts);
  const last = segmentAt(log.end);
  const tried = new Set<number>();
  for (;;) {
    const segment = nextSegment(parts, (number) => number <= last && !tried.has(number));
    if (segment === undefined) return;
    tried.add(segment);
    const { live, records, tombstones } = overlay.usage.get(segment) ?? unused;
    if (!(await parts.fits(live + records + tombstones))) {
      parts.notice(`${nameOf(segment)} is not compacted: the disk has no room for a copy of its live content`);
      continue;
    }
    if (segment === segmentAt(log.end)) log.rotate();
    const damage = await copyUsed(parts, segment).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EIO") throw error;
      parts.notice(`${nameOf(segment)} cannot be read: ${error.message}`);
      return undefined;
    });
    await syncIndex(parts);
    const isUsed = (overlay.usage.get(segment)?.live ?? 0) > 0;
    if (!isUsed && damage !== undefined && (await saveDamage(parts, segment, damage)))
      await removeSegment(parts, segment);
    else parts.notice(`${nameOf(segment)} is damaged and stays as it is`);
  }
}

/** Resolves when everything that was appended is durable and in the index. */
async function syncIndex({ log, overlay }: CompactionDeps): Promise<void> {
  await log.sync();
  await overlay.apply(log.synced);
}

/** Returns the next segment to rewrite: first segments without live content, then the oldest. */
function nextSegment({ overlay, log }: CompactionDeps, eligible: (segment: number) => boolean): number | undefined {
  const oldest = oldestOf(log);
  let chosen: number | undefined;
  for (const segment of [...log.lengths.keys()].sort((a, b) => a - b)) {
    const { live, records, tombstones } = overlay.usage.get(segment) ?? unused;
    // A tombstone must stay while an older segment may contain the block. When the oldest segment
    // has only records, few of them still matter, and writing those again costs little.
    const needed = segment === oldest ? live && live + records : live + records + tombstones;
    const contentBytes = (log.lengths.get(segment) ?? 0) - segmentHeader.length;
    if (!eligible(segment) || contentBytes <= 0 || needed >= contentBytes * MIN_USED_SHARE) continue;
    if (needed === 0) return segment;
    chosen ??= segment;
  }
  return chosen;
}

const oldestOf = ({ lengths }: Log): number => Math.min(...lengths.keys());

/** Appends the live content of a segment to the log. Resolves with the damaged ranges. */
async function copyUsed(parts: CompactionDeps, segment: number): Promise<readonly Damage[]> {
  const { files, overlay, log } = parts;
  const oldest = segment === oldestOf(log);
  const length = log.lengths.get(segment) ?? 0;
  const used = overlay.usage.get(segment) ?? unused;
  if (used.length === length && used.live + used.records + used.tombstones === 0) return [];
  return files.use(segment, async (file) => {
    const copy = (found: FoundSection) => copySection(parts, found, { segment, oldest });
    const reader = new SectionReader(file, segmentHeader.length, length, { withData: true });
    let isWhole = true;
    const slices = new TimeSlices();
    for (let found = await reader.next(); found !== undefined && isWhole; found = await reader.next()) {
      const turn = slices.due();
      if (turn !== undefined) await turn;
      isWhole = !isRecord(found) || (await isIntact(found));
      if (isWhole) await copy(found);
    }
    if (isWhole && reader.damage === undefined) return [];
    const damage: Damage[] = [];
    // Blocks that were already copied have another location now and are not copied again.
    for await (const each of salvage(file, segmentHeader.length, length)) {
      if ("damage" in each) damage.push(each.damage);
      else await copy(each.found);
    }
    return damage;
  });
}

async function copySection(
  parts: CompactionDeps,
  found: FoundSection,
  { segment, oldest }: { readonly segment: number; readonly oldest: boolean },
): Promise<void> {
  const { overlay, log } = parts;
  parts.check();
  if (!log.hasRoom) await log.room();
  if (overlay.isCrowded) await syncIndex(parts);
  // Nothing is awaited from here on, because appended statements must be true when they are
  // appended.
  const statements = readRecord(found);
  if (statements !== undefined) {
    copyStatements(parts, statements, oldest);
    return;
  }
  const stored = overlay.find(found.multihash);
  const { location } = stored ?? {};
  const isCurrentCopy =
    location?.segment === segment && location.offset === found.offset && location.length === found.length;
  if (stored === undefined || !isCurrentCopy) return;
  const appended = log.append({ cid: cidOf(stored.forms[0] as number, found.multihash), bytes: found.data });
  overlay.set(appended.multihash, stored, { forms: stored.forms, location: appended.location }, log.end);
}

/** Copies damaged ranges to `lost+found`. Resolves with whether all of them were copied. */
async function saveDamage(
  { files, notice }: CompactionDeps,
  segment: number,
  damage: readonly Damage[],
): Promise<boolean> {
  try {
    for (const range of damage) {
      const path = await files.use(segment, (file) => setAside(files.fs, files.folder, file, { segment, ...range }));
      notice(`${nameOf(segment)} is damaged from byte ${range.from} to ${range.to}: ${path ?? "zeros only"}`);
    }
    return true;
  } catch {
    return false;
  }
}

/**
 * Writes the current state of the blocks of a record. A tombstone is dropped when no segment is
 * older.
 */
function copyStatements({ overlay, log }: CompactionDeps, statements: readonly Statement[], oldest: boolean): void {
  const still = statements.flatMap(({ multihash, forms }) => {
    const stored = overlay.find(multihash);
    if (stored === undefined) return forms.length === 0 && !oldest ? [{ multihash, forms }] : [];
    return [{ multihash, forms: stored.forms }];
  });
  for (const { bytes, tombstones } of recordSections(still)) {
    log.appendRecord(bytes);
    overlay.addRecord(bytes.length, tombstones, log.end);
  }
}

async function removeSegment({ files, overlay, log }: CompactionDeps, segment: number): Promise<void> {
  await overlay.mark(segment, true);
  log.lengths.delete(segment);
  await files.remove(segment);
  await overlay.mark(segment, undefined);
}
