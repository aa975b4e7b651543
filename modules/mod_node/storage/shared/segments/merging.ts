/** Makes few large segments of many small ones, and of those with much that is no longer stored; on one host at a time. */
import { cidOf, segmentHeader } from "../../blockstore/segments/format.ts";
import { isIntact, SectionReader } from "../../blockstore/segments/section_reader.ts";
import type { Notice } from "../../lmdb/open.ts";
import type { HeldLock, Segment, SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { SegmentCache } from "./cache.ts";
import type { PlaceFeed } from "./feed.ts";
import { carKey, indexKey, objectsOf } from "./names.ts";
import type { SegmentNumbers } from "./numbers.ts";
import { MAX_BLOCKS, type OpenSegment } from "./open_segment.ts";
import type { Places, SegmentRow } from "./places.ts";
import { isLost } from "./stored_segments.ts";
import type { SegmentWriter } from "./writer.ts";

export interface MergingDeps {
  readonly log: SharedLog;
  readonly objects: ObjectStore;
  readonly places: Places;
  readonly numbers: SegmentNumbers;
  readonly feed: PlaceFeed;
  readonly cache: SegmentCache;
  readonly writer: SegmentWriter;
  readonly segmentBytes: number;
  /** Milliseconds for which the objects of segments that were replaced stay. */
  readonly graceMs: number;
  readonly onNotice: Notice;
  /** Everything that was committed anywhere is in the index. */
  readonly catchUp: () => Promise<void>;
}

/** Segments of which a smaller share is in use are rewritten. */
const MIN_USED_SHARE = 0.6;
/** Those that are shorter than this share of a full one are small. */
const SMALL_SHARE = 0.25;
/** So many small ones are worth a segment that is small as well. */
const MIN_SMALL = 16;
const LOCK = "merging segments";

type Candidate = readonly [number: number, row: SegmentRow];

/** Nothing is done when another host is at it. @throws NodeError; what `check` throws, which is called between two steps */
export async function mergeSegments(deps: MergingDeps, check: () => void): Promise<void> {
  await deps.log.withLock(LOCK, async (lock) => {
    const tried = new Set<number>();
    for (;;) {
      check();
      await deps.catchUp();
      const group = nextGroup(deps, tried);
      if (group.length === 0) break;
      for (const [number] of group) tried.add(number);
      await mergeGroup(deps, group, { lock, check });
    }
    await deleteDoomed(deps);
  });
}

/** Deletes the objects of segments that were replaced long enough ago, and lists that nothing has named for as long. @throws NodeError STORE_UNAVAILABLE */
async function deleteDoomed({ log, objects, places, numbers, graceMs }: MergingDeps): Promise<void> {
  const doomed = await log.doomed(graceMs);
  const gone = doomed.filter((id) => !places.rows.has(numbers.find(id) ?? 0));
  if (gone.length === 0) return;
  await objects.delete(gone.flatMap(objectsOf));
  await log.buried(gone);
}

/** What is rewritten next, to one segment: first what nobody needs. */
function nextGroup({ places, segmentBytes }: MergingDeps, tried: ReadonlySet<number>): Candidate[] {
  // Of one whose blocks are not all known, nobody here can say what is in use.
  const rows = [...places.rows].filter(([number, { isWhole }]) => isWhole && !tried.has(number));
  const dead = rows.filter(([, { live }]) => live === 0);
  if (dead.length > 0) return dead;
  const isSmall = ({ bytes }: SegmentRow) => bytes < segmentBytes * SMALL_SHARE;
  const isMostlyDead = ({ live, bytes }: SegmentRow) => live < (bytes - segmentHeader.length) * MIN_USED_SHARE;
  const candidates = rows
    .filter(([, row]) => isSmall(row) || isMostlyDead(row))
    .sort(([, one], [, other]) => one.position - other.position);
  const group: Candidate[] = [];
  let live = segmentHeader.length;
  let blocks = 0;
  for (const candidate of candidates) {
    const [, row] = candidate;
    if (live + row.live > segmentBytes || blocks + row.blocks > MAX_BLOCKS) continue;
    group.push(candidate);
    live += row.live;
    blocks += row.blocks;
  }
  const isWorthIt =
    group.length >= MIN_SMALL || live >= segmentBytes * SMALL_SHARE || group.some(([, row]) => isMostlyDead(row));
  // One that is small and all in use would only be copied.
  return isWorthIt && (group.length > 1 || group.some(([, row]) => isMostlyDead(row))) ? group : [];
}

interface Held {
  readonly lock: HeldLock;
  readonly check: () => void;
}

async function mergeGroup(deps: MergingDeps, group: readonly Candidate[], { lock, check }: Held): Promise<void> {
  const { log, feed, writer, objects } = deps;
  const { removals } = feed;
  // The index must have what was removed before: it says what is copied.
  if (feed.condemning.size > 0 || !feed.isIndexed) return;
  const open = await writer.begin();
  const replaced: SegmentRow[] = [];
  for (const [number, row] of group) {
    if (await isCopied(deps, { number, row, open, check })) replaced.push(row);
    else
      deps.onNotice(
        `${objects.name}${carKey(row.id)} is missing or damaged: it is kept as it is; node store verify says more`,
      );
  }
  const by = open.blocks.length === 0 ? undefined : await writer.upload(open);
  const isDone =
    replaced.length > 0 &&
    (await log.commit(() => {
      // What was removed meanwhile must not come back.
      const isStill = feed.removals === removals && feed.condemning.size === 0;
      if (!isStill || (by && feed.hasCome(by.id))) return { entries: [], result: isStill };
      const segments = replaced.map(({ id }) => id);
      return { entries: [{ kind: "replaced", segments, by: by ? [by] : [] }], result: true };
    }, lock));
  if (by !== undefined && isDone) writer.uploaded(open, by);
  else await discard(deps, open, by);
}

/** It is in no commit, and its name is given only once. */
async function discard({ writer, objects }: MergingDeps, open: OpenSegment, by: Segment | undefined): Promise<void> {
  writer.discard(open, by);
  if (by !== undefined) await objects.delete([carKey(by.id), indexKey(by.id)]);
}

interface Copying {
  readonly number: number;
  readonly row: SegmentRow;
  readonly open: OpenSegment;
  readonly check: () => void;
}

/** False when something that is stored is lost or damaged, and then nothing may come of the segment. @throws as `copyUsed` */
async function isCopied(deps: MergingDeps, copying: Copying): Promise<boolean> {
  try {
    return await copyUsed(deps, copying);
  } catch (error) {
    if (isLost(error)) return false;
    throw error;
  }
}

/** False when something that is stored is damaged. @throws NodeError */
async function copyUsed({ places, cache }: MergingDeps, { number, row, open, check }: Copying): Promise<boolean> {
  if (row.live === 0) return true;
  return cache.use(number, async (file) => {
    const reader = new SectionReader(file, segmentHeader.length, row.bytes, { withData: true });
    for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
      check();
      if (!places.isAt(number, found)) continue;
      if (!(await isIntact(found))) return false;
      if (!open.hasRoom) await open.room();
      open.add({ cid: cidOf(found.form, found.multihash), bytes: found.data });
    }
    return reader.damage === undefined;
  });
}
