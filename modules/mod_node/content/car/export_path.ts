/**
 * Exports part of a DAG as an archive: the blocks of a path, and a selection of what its end leads
 * to ("Trustless Gateway specification").
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
   * The selection at the end of the path. `all` (the default) is everything below it. `entity` is a
   * whole file, a directory without the content of its entries, or one block of any other kind.
   * `block` is that one block.
   */
  readonly scope?: "all" | "entity" | "block" | undefined;
  /**
   * Range of bytes of the file at the end, both ends included. Negative numbers count from the end
   * of the file, and without `to` the range ends there. Only used with the scope `entity`, and only
   * for files.
   */
  readonly range?: { readonly from: number; readonly to: number | undefined } | undefined;
  /** Repeat a block as often as it is linked. */
  readonly duplicates?: boolean | undefined;
  /**
   * Whether a path that leads to a missing name yields the blocks that prove the absence. Clients
   * that verify content need them. The CID is then that of the root, and the root of the archive is
   * an empty block, as in Kubo. By default such a path fails.
   */
  readonly provesAbsence?: boolean | undefined;
  /**
   * Reads blocks that are only passed on to the client, into buffers of a pool. The consumer of the
   * pieces releases each of them to the pool after use.
   */
  readonly pooled?: { readonly read: ReadBlock; readonly buffers: BufferPool } | undefined;
}

export interface PathArchive extends Pick<Resolved, "cid" | "roots"> {
  /** Reads the blocks as it is consumed. Rejects at a missing block, after the blocks before it. */
  readonly archive: AsyncGenerator<Uint8Array, void, undefined>;
}

/**
 * Maximum number of bytes of blocks on the path that stay in memory for one export. Blocks beyond
 * it are read again.
 */
const MAX_RETAINED_BYTES = 64 * 1024;

interface Passed extends Pick<CarBlock, "cid"> {
  readonly bytes: Uint8Array | undefined;
}

/**
 * Exports the blocks of the path from `root` on, in its order, then the selection at its end. The
 * last block of the path is read before this resolves.
 *
 * @throws NodeError when the path leads nowhere, unless `provesAbsence`, or into a value inside a
 * block
 */
export async function exportPath(
  root: CID,
  names: readonly string[],
  read: ReadBlock,
  options: PathArchiveOptions = {},
): Promise<PathArchive> {
  const passed: Passed[] = [];
  let retained = 0;
  const follow = followNames(root, names, async (next) => {
    const bytes = await read(next);
    retained += bytes.length;
    passed.push({ cid: next, bytes: retained > MAX_RETAINED_BYTES ? undefined : bytes });
    return bytes;
  });
  const { buffers } = options.pooled ?? {};
  const found = await follow.catch((error: unknown) => {
    if (options.provesAbsence !== true || !NodeError.is(error) || error.code !== "NO_LINK") throw error;
    return undefined;
  });
  if (found === undefined) {
    return { cid: root, roots: [root], archive: writeCar([NOTHING], proofOf(passed, read, options), buffers) };
  }
  const { cid, roots, remainder } = found;
  // The block itself proves what a path leads to inside it.
  if (remainder.length > 0) passed.pop();
  const last = { cid, bytes: await read(cid) };
  return { cid, roots, archive: writeCar([cid], blocksOf(passed, last, read, options), buffers) };
}

/** The identity CID of zero bytes. */
const NOTHING = CID.parse("bafkqaaa");

/** Yields the blocks up to the one in which the next name is missing. */
async function* proofOf(passed: readonly Passed[], read: ReadBlock, options: PathArchiveOptions): Blocks {
  const { cid, bytes } = passed.at(-1) as Passed;
  const last = { cid, bytes: bytes ?? (await read(cid)) };
  yield* blocksOf(passed.slice(0, -1), last, read, { ...options, scope: "block", range: undefined });
}

/** Blocks in pages. */
type Blocks = AsyncGenerator<readonly CarBlock[], void, undefined>;

/** Decides whether to send a block: it was not sent yet, or may be repeated. */
type IsWanted = (cid: CID) => boolean;

async function* blocksOf(
  passed: readonly Passed[],
  last: CarBlock,
  read: ReadBlock,
  { scope = "all", range, duplicates = false, pooled }: PathArchiveOptions,
): Blocks {
  const seen = new CidSet();
  const isWanted: IsWanted = ({ multihash }) => multihash.code !== identity.code;
  const isNew: IsWanted = (cid) => isWanted(cid) && (duplicates || seen.add(cid));
  const take = pooled?.read ?? read;
  for (const { cid, bytes } of passed) if (isNew(cid)) yield [{ cid, bytes: bytes ?? (await take(cid)) }];
  const entity = scope === "entity" ? unixfsNode(last.cid, last.bytes) : undefined;
  const type = entity?.unixfs.type;
  const isFile = type === "File" || type === "Raw";
  if (entity !== undefined && type === "HAMTShard") yield* shards(last, entity, read, isNew);
  else if (entity !== undefined && isFile && range !== undefined)
    yield* rangeOf(last, entity, read, { range, isNew, duplicates });
  else if (scope === "all" || isFile)
    yield* below(last.cid, read, { seen: duplicates ? undefined : seen, isWanted, pooled });
  else if (isNew(last.cid)) yield [isLarge(last.bytes) ? { cid: last.cid, bytes: await take(last.cid) } : last];
}

/**
 * Yields everything below a block. A block that cannot be decoded counts as one without links: its
 * bytes were requested, too.
 */
async function* below(
  root: CID,
  read: ReadBlock,
  {
    seen,
    isWanted,
    pooled,
  }: Pick<PathArchiveOptions, "pooled"> & { readonly seen: CidSet | undefined; readonly isWanted: IsWanted },
): Blocks {
  const pages =
    seen === undefined ? walkAll(root, read, pooled) : walkPages(root, { read, ...pooled, seen, lenient: true });
  for await (const page of pages) yield page.filter(isRead).filter(({ cid }) => isWanted(cid));
}

/** Number of blocks after which other work of the process gets its turn. */
const TURN_BLOCKS = 256;

/**
 * Yields each block as often as it is linked. Links cannot form a cycle, but the walk can be very
 * long: the consumer has to stop it.
 */
async function* walkAll(root: CID, read: ReadBlock, pooled: PathArchiveOptions["pooled"]): Blocks {
  const take = pooled?.read ?? read;
  const stack: CID[] = [root];
  for (let cid = stack.pop(), steps = 1; cid !== undefined; cid = stack.pop(), steps += 1) {
    if (steps % TURN_BLOCKS === 0) await nextTurn();
    const bytes = await take(cid);
    // The consumer may release the block, so the links must not refer to its bytes.
    const links = lasting(await linksIn(cid, bytes), bytes, pooled?.buffers);
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

/**
 * Yields all nodes of a sharded directory, without its entries. A valid directory has no node
 * twice.
 */
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

interface RangePart {
  readonly cid: CID;
  /** Offset of its first byte in the file. */
  readonly start: number;
  /** Whether all of its bytes are within the range. */
  readonly isWhole: boolean;
}

interface RangeOptions {
  readonly range: NonNullable<PathArchiveOptions["range"]>;
  readonly isNew: IsWanted;
  readonly duplicates: boolean;
}

/** Yields the nodes on the way to the bytes of a range, and the leaves that contain them. */
async function* rangeOf(
  root: CarBlock,
  node: UnixfsNode,
  read: ReadBlock,
  { range, isNew, duplicates }: RangeOptions,
): Blocks {
  const size = fileSize(node);
  const at = (offset: number) => (offset < 0 ? Math.max(0, size + offset) : offset);
  const from = at(range.from);
  const end = range.to === undefined ? size : at(range.to) + 1;
  // Parts of which all blocks were sent. Files that repeat themselves, such as sparse files, have
  // few blocks but very many parts.
  const sent = new CidSet();
  const stack: RangePart[] = [{ cid: root.cid, start: 0, isWhole: from <= 0 && end >= size }];
  for (let part = stack.pop(), steps = 1; part !== undefined; part = stack.pop(), steps += 1) {
    if (steps % TURN_BLOCKS === 0) await nextTurn();
    const { cid, start, isWhole } = part;
    if (isWhole && !duplicates && !sent.add(cid)) continue;
    const bytes = cid === root.cid ? root.bytes : await read(cid);
    if (isNew(cid)) yield [{ cid, bytes }];
    const inner = unixfsNode(cid, bytes);
    if (inner === undefined) throw failure("UNIXFS_PART_INVALID", { cid: String(cid) });
    // No spread syntax here: there may be more parts than a call can have arguments.
    for (const each of partsIn(inner, start, from, end).reverse()) stack.push(each);
  }
}

/** Returns the parts below a node that overlap the bytes from `from` to `end`, in order. */
function partsIn({ links, unixfs }: UnixfsNode, start: number, from: number, end: number): RangePart[] {
  const parts: RangePart[] = [];
  let at = start + (unixfs.data?.length ?? 0);
  for (const [index, { cid }] of links.entries()) {
    const size = unixfs.blocksizes?.[index] ?? 0;
    if (at < end && at + size > from) parts.push({ cid, start: at, isWhole: at >= from && at + size <= end });
    at += size;
  }
  return parts;
}
