/** How a commit comes into the backlog. */
import type { BlockList, Commit, Entry, Segment } from "../log.ts";
import type { Backlog } from "./backlog.ts";
import { segmentsOf } from "./expected_segments.ts";
import { type IndexedBlock, isOfWhole } from "./index_file.ts";
import type { SegmentNumbers } from "./numbers.ts";

export interface NotingDeps {
  readonly numbers: SegmentNumbers;
  /** @throws NodeError STORE_UNAVAILABLE */
  readonly blocksOf: (segment: Segment) => Promise<readonly IndexedBlock[]>;
  /** The CIDs of a list, as bytes. @throws NodeError STORE_UNAVAILABLE */
  readonly readList: (list: BlockList) => Promise<readonly Uint8Array[]>;
}

/** What an entry says of blocks. */
type Said =
  | { readonly segment: Segment; readonly found: readonly IndexedBlock[] }
  | { readonly entry: Extract<Entry, { kind: "condemned" | "removed" }>; readonly cids: readonly Uint8Array[] };

/** All of a commit is read before any of it is noted: one that cannot be read leaves nothing behind, however often it is tried. */
export async function note(commit: Commit, backlog: Backlog, deps: NotingDeps): Promise<void> {
  const { position } = commit;
  for (const said of await read(commit, deps)) {
    if ("segment" in said) {
      const { segment, found } = said;
      const { id, bytes, blocks } = segment;
      const row = { id, bytes, blocks, position, isWhole: isOfWhole(segment, found) };
      await backlog.addSegment(deps.numbers.of(id), row, found);
      continue;
    }
    const { entry, cids } = said;
    if (entry.kind === "removed") await backlog.addRemoved(entry.epoch, cids);
    else await backlog.addCondemned(entry.epoch, Math.min(entry.upTo, position), cids);
  }
}

async function read({ entries }: Commit, { blocksOf, readList }: NotingDeps): Promise<Said[]> {
  const said: Said[] = [];
  for (const entry of entries) {
    for (const segment of segmentsOf(entry)) said.push({ segment, found: await blocksOf(segment) });
    if (entry.kind === "condemned") said.push({ entry, cids: await readList(entry.list) });
    if (entry.kind === "removed") said.push({ entry, cids: await readList(entry.rescued) });
  }
  return said;
}
