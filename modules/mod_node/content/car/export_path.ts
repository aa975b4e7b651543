/**
 * Part of a DAG as an archive: a path, and what is wanted from its end ("Trustless Gateway
 * specification").
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { CID } from "multiformats/cid";
import { isLarge, lasting } from "../../formats/cid/detached.ts";
import { identity } from "../../formats/cid/hashes.ts";
import { CidSet } from "../../formats/cid/set.ts";
import { linksWithTurns } from "../../formats/ipld/links.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { walkPages } from "../dag/walk.ts";
import { followNames, type Resolved } from "../resolver/resolve.ts";
import { fileSize, type UnixfsNode, unixfsNode } from "../unixfs/node.ts";
import { digitsFor, SHARD_WIDTH } from "../unixfs/shard.ts";
import { type CarBlock, isRead, writeCar } from "./write.ts";

export interface PathArchiveOptions {
  /**
   * From the end of the path: `all` below it, by default; the `entity`, which is a whole file, a
   * directory without what is in it, or one block of any other kind; that one `block`.
   */
  readonly scope?: "all" | "entity" | "block" | undefined;
  /**
   * Bytes of the file at the end, the last one included, of which blocks are wanted; negative ones
   * count from the end of the file, and no `to` is its end. Only with the scope `entity`; what is
   * no file has no range.
   */
  readonly range?: { readonly from: number; readonly to: number | undefined } | undefined;
  /** A block that is linked several times is there as often. */
  readonly duplicates?: boolean | undefined;
  /**
   * Whether a path whose next name does not exist gives the blocks that prove it, as a client that
   * verifies content needs them: the CID is then that of the root, and the archive's own root is
   * empty, as in Kubo. By default such a path fails.
   */
  readonly provesAbsence?: boolean | undefined;
  /**
   * How blocks are read that are only handed on, into buffers of a pool. Whoever consumes the
   * pieces releases each to it after use.
   */
  readonly lent?: { readonly read: ReadBlock; readonly buffers: BufferPool } | undefined;
}

export interface PathArchive extends Pick<Resolved, "cid" | "roots"> {
  /** Blocks are read as it is. Rejects for one that is missing, after those before it. */
  readonly archive: AsyncGenerator<Uint8Array, void, undefined>;
}

/**
 * Blocks on the way to the end of a path are held up to so many bytes, for each who reads; those
 * beyond are read again.
 */
const MAX_HELD_BYTES = 64 * 1024;

interface Passed extends Pick<CarBlock, "cid"> {
  readonly bytes: Uint8Array | undefined;
}

/**
 * The blocks of the path from `root` on, in its order, then those from its end. The last block is
 * read before this resolves.
 *
 * @throws NodeError when the path leads nowhere, unless `provesAbsence`, or into a value of a block
 */
export async function exportPath(
  root: CID,
  names: readonly string[],
  read: ReadBlock,
  options: PathArchiveOptions = {},
): Promise<PathArchive> {
  const passed: Passed[] = [];
  let held = 0;
  const follow = followNames(root, names, async (next) => {
    const bytes = await read(next);
    held += bytes.length;
    passed.push({ cid: next, bytes: held > MAX_HELD_BYTES ? undefined : bytes });
    return bytes;
  });
  const { buffers } = options.lent ?? {};
  const found = await follow.catch((error: unknown) => {
    if (options.provesAbsence !== true || !NodeError.is(error) || error.code !== "NO_LINK") throw error;
    return undefined;
  });
  if (found === undefined) {
    return { cid: root, roots: [root], archive: writeCar([NOTHING], proofOf(passed, read, options), buffers) };
  }
  const { cid, roots, remainder } = found;
  // What a path leads to inside a block is proven by that block.
  if (remainder.length > 0) passed.pop();
  const last = { cid, bytes: await read(cid) };
  return { cid, roots, archive: writeCar([cid], blocksOf(passed, last, read, options), buffers) };
}

/** The identity CID of no bytes. */
const NOTHING = CID.parse("bafkqaaa");

/** The blocks up to the one in which the next name is missing. */
async function* proofOf(passed: readonly Passed[], read: ReadBlock, options: PathArchiveOptions): Blocks {
  const { cid, bytes } = passed.at(-1) as Passed;
  const last = { cid, bytes: bytes ?? (await read(cid)) };
  yield* blocksOf(passed.slice(0, -1), last, read, { ...options, scope: "block", range: undefined });
}

/** In pages. */
type Blocks = AsyncGenerator<readonly CarBlock[], void, undefined>;

/** Whether a block is to be sent, for the first time or again. */
type IsWanted = (cid: CID) => boolean;

async function* blocksOf(
  passed: readonly Passed[],
  last: CarBlock,
  read: ReadBlock,
  { scope = "all", range, duplicates = false, lent }: PathArchiveOptions,
): Blocks {
  const seen = new CidSet();
  const isWanted: IsWanted = ({ multihash }) => multihash.code !== identity.code;
  const isNew: IsWanted = (cid) => isWanted(cid) && (duplicates || seen.add(cid));
  const take = lent?.read ?? read;
  for (const { cid, bytes } of passed) if (isNew(cid)) yield [{ cid, bytes: bytes ?? (await take(cid)) }];
  const entity = scope === "entity" ? unixfsNode(last.cid, last.bytes) : undefined;
  const type = entity?.unixfs.type;
  const isFile = type === "File" || type === "Raw";
  if (entity !== undefined && type === "HAMTShard") yield* shards(last, entity, read, isNew);
  else if (entity !== undefined && isFile && range !== undefined)
    yield* rangeOf(last, entity, read, { range, isNew, duplicates });
  else if (scope === "all" || isFile)
    yield* below(last.cid, read, { seen: duplicates ? undefined : seen, isWanted, lent });
  else if (isNew(last.cid)) yield [isLarge(last.bytes) ? { cid: last.cid, bytes: await take(last.cid) } : last];
}

/**
 * All that is below a block. What cannot be decoded has no links: its bytes are what was asked for.
 */
async function* below(
  root: CID,
  read: ReadBlock,
  {
    seen,
    isWanted,
    lent,
  }: Pick<PathArchiveOptions, "lent"> & { readonly seen: CidSet | undefined; readonly isWanted: IsWanted },
): Blocks {
  const pages =
    seen === undefined ? walkAll(root, read, lent) : walkPages(root, { read, ...lent, seen, lenient: true });
  for await (const page of pages) yield page.filter(isRead).filter(({ cid }) => isWanted(cid));
}

/** Blocks after which other work of the process gets its turn. */
const TURN_BLOCKS = 256;

/**
 * Each block as often as it is linked. Endless graphs of links do not exist, but very long ones:
 * whoever reads ends it.
 */
async function* walkAll(root: CID, read: ReadBlock, lent: PathArchiveOptions["lent"]): Blocks {
  const take = lent?.read ?? read;
  const stack: CID[] = [root];
  for (let cid = stack.pop(), steps = 1; cid !== undefined; cid = stack.pop(), steps += 1) {
    if (steps % TURN_BLOCKS === 0) await nextTurn();
    const bytes = await take(cid);
    // Whoever gets the block may release it.
    const links = lasting(await linksIn(cid, bytes), bytes, lent?.buffers);
    yield [{ cid, bytes }];
    for (let at = links.length - 1; at >= 0; at -= 1) stack.push(links[at] as CID);
  }
}

async function linksIn(cid: CID, bytes: Uint8Array): Promise<readonly CID[]> {
  try {
    return await linksWithTurns(cid, bytes);
  } catch (error) {
    if (error instanceof NodeError) return [];
    throw error;
  }
}

/** All nodes of a directory, and none of its entries. A valid one meets none of them twice. */
async function* shards(root: CarBlock, node: UnixfsNode, read: ReadBlock, isNew: IsWanted): Blocks {
  const digits = digitsFor(node.unixfs.fanout ?? SHARD_WIDTH);
  const met = new CidSet();
  const stack: CID[] = [];
  const enter = ({ links }: UnixfsNode) => {
    for (const { name, cid } of links.toReversed()) if (name.length === digits) stack.push(cid);
  };
  if (isNew(root.cid)) yield [root];
  enter(node);
  for (let cid = stack.pop(), steps = 1; cid !== undefined; cid = stack.pop(), steps += 1) {
    if (steps % TURN_BLOCKS === 0) await nextTurn();
    if (!met.add(cid)) continue;
    const bytes = await read(cid);
    if (isNew(cid)) yield [{ cid, bytes }];
    const inner = unixfsNode(cid, bytes);
    if (inner?.unixfs.type !== "HAMTShard") throw failure("NOT_DAG_PB");
    enter(inner);
  }
}

interface Part {
  readonly cid: CID;
  /** Where its bytes begin in the file. */
  readonly start: number;
  /** The range has all of its bytes. */
  readonly isWhole: boolean;
}

interface RangeOptions {
  readonly range: NonNullable<PathArchiveOptions["range"]>;
  readonly isNew: IsWanted;
  readonly duplicates: boolean;
}

/** The nodes on the way to the bytes of a range, and the leaves that hold them. */
async function* rangeOf(
  root: CarBlock,
  node: UnixfsNode,
  read: ReadBlock,
  { range, isNew, duplicates }: RangeOptions,
): Blocks {
  const size = fileSize(node);
  const at = (place: number) => (place < 0 ? Math.max(0, size + place) : place);
  const from = at(range.from);
  const end = range.to === undefined ? size : at(range.to) + 1;
  // Of these all blocks were sent: files that repeat themselves, as sparse ones do, have few blocks
  // and very many parts.
  const sent = new CidSet();
  const stack: Part[] = [{ cid: root.cid, start: 0, isWhole: from <= 0 && end >= size }];
  for (let part = stack.pop(), steps = 1; part !== undefined; part = stack.pop(), steps += 1) {
    if (steps % TURN_BLOCKS === 0) await nextTurn();
    const { cid, start, isWhole } = part;
    if (isWhole && !duplicates && !sent.add(cid)) continue;
    const bytes = cid === root.cid ? root.bytes : await read(cid);
    if (isNew(cid)) yield [{ cid, bytes }];
    const inner = unixfsNode(cid, bytes);
    if (inner === undefined) throw failure("UNIXFS_PART_INVALID", { cid: String(cid) });
    // Not by spreading: there may be more of them than a call can have arguments.
    for (const each of partsIn(inner, start, from, end).reverse()) stack.push(each);
  }
}

/** The parts below a node that overlap the bytes from `from` to `end`, in order. */
function partsIn({ links, unixfs }: UnixfsNode, start: number, from: number, end: number): Part[] {
  const parts: Part[] = [];
  let at = start + (unixfs.data?.length ?? 0);
  for (const [index, { cid }] of links.entries()) {
    const size = unixfs.blocksizes?.[index] ?? 0;
    if (at < end && at + size > from) parts.push({ cid, start: at, isWhole: at >= from && at + size <= end });
    at += size;
  }
  return parts;
}
