/**
 * Describes the entries of directories page by page. Entries that are already known need no wait,
 * and small blocks in memory are read together.
 */
import type { CID } from "multiformats/cid";
import { dagPb } from "../../formats/cid/codecs.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { type UnixfsType, unixfsTypes } from "../../formats/unixfs/format.ts";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { TimeSlices } from "../../util/async/steps.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { fileSize, type UnixfsNode, unixfsNode } from "./node.ts";

/** Maximum number of links that are handled together. */
const PAGE_LINKS = 128;
/** Maximum number of children that are read concurrently. */
const MAX_CHILDREN = 16;

/** The description of most entries in a list: those without mode, time and target. */
export interface PlainFacts {
  readonly type: UnixfsType;
  /** Size of a file in bytes. */
  readonly size: number;
}

/** How a list describes its entries. */
export interface Describing<T> {
  /** Describes a link without its block. Returns undefined if the block is needed. */
  unread(link: PbLink): T | undefined;
  /** Describes a link by facts that were noted about its block. */
  known(link: PbLink, facts: PlainFacts): T;
  /** Describes a link by its block. @throws NodeError for a block that cannot be listed */
  read(link: PbLink, bytes: Uint8Array): T;
}

/**
 * Yields the descriptions of all links, in order. Links that need no wait come in pages, all others
 * as soon as they were read.
 *
 * @throws what `read` and `describing` throw, after the descriptions before it
 */
export async function* described<T>(
  links: AsyncIterable<readonly PbLink[]>,
  read: ReadBlock,
  describing: Describing<T>,
): AsyncGenerator<readonly T[], void, undefined> {
  const slices = new TimeSlices();
  for await (const page of links) {
    for (let at = 0; at < page.length; at += PAGE_LINKS) {
      const turn = slices.due();
      if (turn !== undefined) await turn;
      const some = at === 0 && page.length <= PAGE_LINKS ? page : page.slice(at, at + PAGE_LINKS);
      const made = describedNow(some, read, describing);
      if (!made.includes(undefined)) {
        yield made as readonly T[];
        continue;
      }
      yield* completed(some, made, read, describing);
    }
  }
}

/** Yields the descriptions in `made`, and reads the missing ones concurrently. */
async function* completed<T>(
  links: readonly PbLink[],
  made: readonly (T | undefined)[],
  read: ReadBlock,
  describing: Describing<T>,
): AsyncGenerator<readonly T[], void, undefined> {
  const open = [...made.keys()].filter((at) => made[at] === undefined);
  const reading = mapConcurrent(open, MAX_CHILDREN, async (at) => {
    const link = links[at] as PbLink;
    return describing.read(link, await read(link.cid));
  });
  let from = 0;
  try {
    for (const at of open) {
      if (at > from) yield made.slice(from, at) as T[];
      const { value } = await reading.next();
      yield [value as T];
      from = at + 1;
    }
    if (from < made.length) yield made.slice(from) as T[];
  } finally {
    await reading.return();
  }
}

/**
 * Describes the links that need no wait. Returns undefined for the others, and for links that fail:
 * the later read reports the failure.
 */
function describedNow<T>(links: readonly PbLink[], read: ReadBlock, describing: Describing<T>): (T | undefined)[] {
  const { notes } = read;
  const made: (T | undefined)[] = [];
  const open: number[] = [];
  for (let at = 0; at < links.length; at += 1) {
    const link = links[at] as PbLink;
    const known = describing.unread(link);
    const note = known === undefined ? notes?.get(link.cid) : undefined;
    made.push(note === undefined ? known : describing.known(link, factsOf(note)));
    if (made[at] === undefined) open.push(at);
  }
  if (open.length === 0) return made;
  const here = read.peek?.(open.map((at) => (links[at] as PbLink).cid)) ?? [];
  for (let index = 0; index < open.length; index += 1) {
    const bytes = here[index];
    if (bytes === undefined) continue;
    const at = open[index] as number;
    const link = links[at] as PbLink;
    try {
      const facts = factsIn(link.cid, bytes, notes);
      made[at] = facts === undefined ? describing.read(link, bytes) : describing.known(link, facts);
    } catch {
      // The failure is reported when it is the turn of this link.
    }
    read.release?.(bytes);
  }
  return made;
}

const TYPES = 8;
/** Limit of sizes. Larger ones would not be exact in one number with the type. */
const MAX_SIZE = Number.MAX_SAFE_INTEGER / TYPES - 1;

/** Reads the facts from a block and notes them. @throws NodeError for a malformed block */
function factsIn(cid: CID, bytes: Uint8Array, notes: ReadBlock["notes"]): PlainFacts | undefined {
  const node = unixfsNode(cid, bytes);
  if (node === undefined || !isPlain(node)) return undefined;
  const { type } = node.unixfs;
  const size = fileSize(node);
  if (cid.code === dagPb && size <= MAX_SIZE) notes?.set(cid, size * TYPES + unixfsTypes.indexOf(type));
  return { type, size };
}

const isPlain = ({ unixfs: { type, mode, mtime } }: UnixfsNode): boolean =>
  mode === undefined && mtime === undefined && type !== "Symlink" && type !== "Metadata";

const factsOf = (note: number): PlainFacts => ({
  type: unixfsTypes[note % TYPES] as UnixfsType,
  size: Math.floor(note / TYPES),
});

/** Yields links that are available as the only page. */
export async function* alone(links: readonly PbLink[]): AsyncGenerator<readonly PbLink[], void, undefined> {
  yield links;
}
