/** Adds a commit to the backlog. */
import type { BlockList, Commit, Entry, Segment } from "../log.ts";
import type { Backlog } from "./backlog.ts";
import { segmentsOf } from "./expected_segments.ts";
import { type IndexedBlock, isOfWhole } from "./index_file.ts";
import type { SegmentNumbers } from "./numbers.ts";

export interface CommitSources {
  readonly numbers: SegmentNumbers;
  /** @throws NodeError STORE_UNAVAILABLE */
  readonly blocksOf: (segment: Segment) => Promise<readonly IndexedBlock[]>;
  /**
   * Loads the CIDs of a list as bytes.
   * @throws NodeError STORE_UNAVAILABLE
   */
  readonly readList: (list: BlockList) => Promise<readonly Uint8Array[]>;
}

/** The content of an entry about blocks. */
type EntryContent =
  | { readonly segment: Segment; readonly found: readonly IndexedBlock[] }
  | { readonly entry: Extract<Entry, { kind: "condemned" | "removed" }>; readonly cids: readonly Uint8Array[] };

/**
 * Reads a whole commit before it adds any of it. So a commit that cannot be read leaves nothing
 * behind, however often it is tried.
 */
export async function addToBacklog(commit: Commit, backlog: Backlog, deps: CommitSources): Promise<void> {
  const { position } = commit;
  for (const contents of await read(commit, deps)) {
    if ("segment" in contents) {
      const { segment, found } = contents;
      const { id, bytes, blocks } = segment;
      const row = { id, bytes, blocks, position, isWhole: isOfWhole(segment, found) };
      await backlog.addSegment(deps.numbers.of(id), row, found);
      continue;
    }
    const { entry, cids } = contents;
    if (entry.kind === "removed") await backlog.addRemoved(entry.epoch, cids);
    else await backlog.addCondemned(entry.epoch, Math.min(entry.upTo, position), cids);
  }
}

async function read({ entries }: Commit, { blocksOf, readList }: CommitSources): Promise<EntryContent[]> {
  const contents: EntryContent[] = [];
  for (const entry of entries) {
    for (const segment of segmentsOf(entry)) contents.push({ segment, found: await blocksOf(segment) });
    if (entry.kind === "condemned") contents.push({ entry, cids: await readList(entry.list) });
    if (entry.kind === "removed") contents.push({ entry, cids: await readList(entry.rescued) });
  }
  return contents;
}
