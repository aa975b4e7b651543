/**
 * Merges many small segments, and segments with many removed blocks, into few large ones. Only one
 * host merges at a time.
 */
import { cidOf, segmentHeader } from "../../blockstore/segments/format.ts";
import { isIntact, SectionReader } from "../../blockstore/segments/section_reader.ts";
import type { Notice } from "../../lmdb/open.ts";
import type { Segment, SharedLog, StoreLock } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { BlockIndex, SegmentRow } from "./block_index.ts";
import type { SegmentCache } from "./cache.ts";
import type { IndexFeed } from "./index_feed.ts";
import { carKey, indexKey, objectsOf } from "./names.ts";
import type { SegmentNumbers } from "./numbers.ts";
import { MAX_BLOCKS, type OpenSegment } from "./open_segment.ts";
import { isLost } from "./stored_segments.ts";
import type { SegmentWriter } from "./writer.ts";

export interface MergingDeps {
  readonly log: SharedLog;
  readonly objects: ObjectStore;
  readonly index: BlockIndex;
  readonly numbers: SegmentNumbers;
  readonly feed: IndexFeed;
  readonly cache: SegmentCache;
  readonly writer: SegmentWriter;
  readonly segmentBytes: number;
  /** Milliseconds for which the objects of replaced segments stay. */
  readonly graceMs: number;
  readonly onNotice: Notice;
  /** Resolves when everything that any host has committed is in the index. */
  readonly catchUp: () => Promise<void>;
}

/** A segment with a smaller share of live bytes is rewritten. */
const MIN_USED_SHARE = 0.6;
/** A segment that is shorter than this share of a full one is small. */
const SMALL_SHARE = 0.25;
/** This many small segments are merged even if the result is small as well. */
const MIN_SMALL = 16;
const LOCK = "merging segments";

type Candidate = readonly [number: number, row: SegmentRow];

/**
 * Merges segments, unless another host is merging.
 * @throws NodeError; the error of `check`, which is called between two steps
 */
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

/**
 * Deletes the objects of segments that were replaced long enough ago, and of lists that no entry
 * has named for as long.
 * @throws NodeError STORE_UNAVAILABLE
 */
async function deleteDoomed({ log, objects, index, numbers, graceMs }: MergingDeps): Promise<void> {
  const candidates = await log.deletableObjects(graceMs);
  const gone = candidates.filter((id) => !index.rows.has(numbers.find(id) ?? 0));
  if (gone.length === 0) return;
  await objects.delete(gone.flatMap(objectsOf));
  await log.markDeleted(gone);
}

/**
 * Returns the segments that are rewritten to one segment next. Segments without live blocks come
 * first.
 */
function nextGroup({ index, segmentBytes }: MergingDeps, tried: ReadonlySet<number>): Candidate[] {
  // In a segment with unknown blocks, this host cannot know which bytes are live.
  const rows = [...index.rows].filter(([number, { isWhole }]) => isWhole && !tried.has(number));
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
  // A single small segment without dead bytes would only be copied.
  return isWorthIt && (group.length > 1 || group.some(([, row]) => isMostlyDead(row))) ? group : [];
}

interface MergeLock {
  readonly lock: StoreLock;
  readonly check: () => void;
}

async function mergeGroup(deps: MergingDeps, group: readonly Candidate[], { lock, check }: MergeLock): Promise<void> {
  const { log, feed, writer, objects } = deps;
  const { removals } = feed;
  // The index must contain all removals, because it determines which blocks are copied.
  if (feed.condemning.size > 0 || !feed.isIndexed) return;
  const open = await writer.begin();
  const replaced: SegmentRow[] = [];
  for (const [number, row] of group) {
    if (await isCopied(deps, { number, row, open, check })) replaced.push(row);
    else
      deps.onNotice(
        `${objects.name}${carKey(row.id)} is missing or damaged and stays as it is; run node store verify for details`,
      );
  }
  const by = open.blocks.length === 0 ? undefined : await writer.upload(open);
  const isDone =
    replaced.length > 0 &&
    (await log.commit(() => {
      // Blocks that were removed in the meantime must not come back.
      const isStill = feed.removals === removals && feed.condemning.size === 0;
      if (!isStill || (by && feed.hasArrived(by.id))) return { entries: [], result: isStill };
      const segments = replaced.map(({ id }) => id);
      return { entries: [{ kind: "replaced", segments, by: by ? [by] : [] }], result: true };
    }, lock));
  if (by !== undefined && isDone) writer.uploaded(open, by);
  else await discard(deps, open, by);
}

/** Deletes an uploaded segment that is in no commit. Its id is never used again. */
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

/**
 * Copies the live blocks of a segment. Resolves with false when a live block is lost or damaged;
 * the segment must then not be replaced.
 * @throws the errors of `copyUsed`
 */
async function isCopied(deps: MergingDeps, copying: Copying): Promise<boolean> {
  try {
    return await copyUsed(deps, copying);
  } catch (error) {
    if (isLost(error)) return false;
    throw error;
  }
}

/**
 * Copies the live blocks of a segment. Resolves with false when one of them is damaged.
 * @throws NodeError
 */
async function copyUsed({ index, cache }: MergingDeps, { number, row, open, check }: Copying): Promise<boolean> {
  if (row.live === 0) return true;
  return cache.use(number, async (file) => {
    const reader = new SectionReader(file, segmentHeader.length, row.bytes, { withData: true });
    for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
      check();
      if (!index.isAt(number, found)) continue;
      if (!(await isIntact(found))) return false;
      if (!open.hasRoom) await open.room();
      open.add({ cid: cidOf(found.form, found.multihash), bytes: found.data });
    }
    return reader.damage === undefined;
  });
}
