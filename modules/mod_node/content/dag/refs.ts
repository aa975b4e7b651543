/** Lists the links of DAGs, for `refs`. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import type { CidNumberMap } from "../../formats/cid/set.ts";
import { namedLinksWithTurns } from "../../formats/ipld/links.ts";
import type { ReadBlock } from "./reader.ts";

export interface RefsWalkOptions {
  /** Reads a node. Children are fetched before they are listed. */
  readonly read: ReadBlock;
  readonly unique: boolean;
  /** Maximum number of levels below the root; negative for no limit. */
  readonly maxDepth: number;
  /**
   * The CIDs seen so far, with their least depth. Share it between walks to list each CID once in
   * all of them.
   */
  readonly seen: CidNumberMap;
  readonly signal?: AbortSignal | undefined;
}

export interface Ref {
  readonly from: CID;
  readonly to: CID;
  /** Name of the link. */
  readonly name: string;
}

/** Number of links after which other work of the process gets its turn. */
const TURN_STEPS = 256;

interface RefsLevel {
  readonly from: CID;
  readonly links: readonly { readonly name: string; readonly cid: CID }[];
  at: number;
}

/**
 * Yields the links below the root whose bytes are given, in order. The links of a node follow the
 * link to it.
 *
 * @throws at a missing block
 */
export async function* refs(
  root: CID,
  bytes: Uint8Array,
  options: RefsWalkOptions,
): AsyncGenerator<Ref, void, undefined> {
  const { read, signal } = options;
  const stack: RefsLevel[] = [{ from: root, links: await namedLinksWithTurns(root, bytes), at: 0 }];
  for (let level = stack.at(-1), steps = 1; level !== undefined; level = stack.at(-1), steps += 1) {
    // Lets the event loop run, so that a disconnection of the client is noticed.
    if (steps % TURN_STEPS === 0) await nextTurn();
    signal?.throwIfAborted();
    const link = level.links[level.at++];
    if (link === undefined) {
      stack.pop();
      continue;
    }
    const { list, follow } = visit(link.cid, stack.length, options);
    if (!list && !follow) continue;
    const bytes = await read(link.cid);
    if (list) yield { from: level.from, to: link.cid, name: link.name };
    if (follow) stack.push({ from: link.cid, links: await namedLinksWithTurns(link.cid, bytes), at: 0 });
  }
}

/**
 * A node that occurs again nearer to the root is followed again, because more of its links are
 * within the limit. It is not listed again.
 */
function visit(
  cid: CID,
  depth: number,
  { unique, maxDepth, seen }: RefsWalkOptions,
): { list: boolean; follow: boolean } {
  const limited = maxDepth >= 0;
  if (limited && depth > maxDepth) return { list: false, follow: false };
  const follow = !limited || depth < maxDepth;
  if (!unique) return { list: true, follow };
  const before = seen.get(cid);
  if (before !== undefined && (!limited || before <= depth)) return { list: false, follow: false };
  seen.set(cid, depth);
  return { list: before === undefined, follow };
}
