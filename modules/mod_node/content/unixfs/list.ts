/** Reads the entries of directories, plain and sharded. */
import { CidSet } from "../../formats/cid/set.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { failure } from "../../util/errors.ts";
import { type ReadBlock, readSoon } from "../dag/reader.ts";
import { type UnixfsNode, unixfsNode } from "./node.ts";
import { digitsFor, SHARD_WIDTH, shardPath, slotPrefix, slotsAlong } from "./shard.ts";

/**
 * Maximum number of shards that are requested ahead if they need a wait, and if they are in memory.
 */
const MAX_READAHEAD = 8;
const MAX_AT_HAND = 16;
/** Minimum number of entries of small shards in one page. */
const MIN_PAGE = 256;

async function shardNode(link: PbLink, read: ReadBlock): Promise<UnixfsNode> {
  return shardOf(link, await read(link.cid));
}

function shardOf(link: PbLink, bytes: Uint8Array): UnixfsNode {
  const node = unixfsNode(link.cid, bytes);
  if (node?.unixfs.type !== "HAMTShard") throw failure("NOT_DAG_PB");
  return node;
}

/**
 * Yields the links of a directory under their real names: in stored order for a plain directory, in
 * the order of the HAMT for a sharded one. A million entries need little more memory than one shard
 * of each level. A shard that is linked twice is listed once.
 */
export async function* entries(directory: UnixfsNode, read: ReadBlock): AsyncGenerator<PbLink, void, undefined> {
  for await (const page of entryPages(directory, read)) yield* page;
}

/** Like `entries`, in pages. A page is yielded before a shard has to be waited for. */
export async function* entryPages(
  directory: UnixfsNode,
  read: ReadBlock,
): AsyncGenerator<readonly PbLink[], void, undefined> {
  if (directory.unixfs.type !== "HAMTShard") {
    yield directory.links;
    return;
  }
  const prefix = digitsFor(directory.unixfs.fanout ?? SHARD_WIDTH);
  const stack = directory.links.toReversed();
  const requested = new Map<PbLink, UnixfsNode | Promise<UnixfsNode>>();
  // A valid directory has no shard twice, because each entry is in one shard only.
  const seen = new CidSet();
  let page: PbLink[] = [];
  for (let link = stack.pop(); link !== undefined; link = stack.pop()) {
    if (link.name.length > prefix) {
      page.push({ name: link.name.slice(prefix), size: link.size, cid: link.cid });
      continue;
    }
    if (!requested.has(link)) requestAhead(link, stack, prefix, requested, read);
    const own = requested.get(link) as UnixfsNode | Promise<UnixfsNode>;
    requested.delete(link);
    if (!seen.add(link.cid)) continue;
    if (page.length > 0 && (own instanceof Promise || page.length >= MIN_PAGE)) {
      yield page;
      page = [];
    }
    const { links } = own instanceof Promise ? await own : own;
    // No spread syntax here: there may be more links than a call can have arguments.
    for (let at = links.length - 1; at >= 0; at -= 1) stack.push(links[at] as PbLink);
  }
  if (page.length > 0) yield page;
}

/** Requests a shard, and as many of the next shards as there is room for. */
function requestAhead(
  link: PbLink,
  next: readonly PbLink[],
  prefix: number,
  requested: Map<PbLink, UnixfsNode | Promise<UnixfsNode>>,
  read: ReadBlock,
): void {
  const wanted = [link];
  for (let at = next.length - 1; at >= 0 && wanted.length + requested.size < MAX_AT_HAND; at -= 1) {
    const one = next[at] as PbLink;
    if (one.name.length <= prefix && !requested.has(one)) wanted.push(one);
  }
  const here = read.peek?.(wanted.map(({ cid }) => cid)) ?? [];
  for (const [at, one] of wanted.entries()) {
    const node = shardHere(one, here[at]);
    if (node === undefined && at > 0 && requested.size >= MAX_READAHEAD) continue;
    const coming = node ?? shardNode(one, read);
    if (coming instanceof Promise) coming.catch(() => {});
    requested.set(one, coming);
  }
}

/** Returns undefined for a block that is not a shard, too: the later read reports it. */
function shardHere(link: PbLink, bytes: Uint8Array | undefined): UnixfsNode | undefined {
  try {
    return bytes && shardOf(link, bytes);
  } catch {
    return undefined;
  }
}

/**
 * Returns the link of a slot: by binary search, or by a linear search if the links are not in
 * order.
 */
function linkIn({ links }: UnixfsNode, prefix: string): PbLink | undefined {
  let from = 0;
  for (let to = links.length; from < to; ) {
    const middle = (from + to) >> 1;
    if ((links[middle] as PbLink).name < prefix) from = middle + 1;
    else to = middle;
  }
  const link = links[from];
  return link?.name.startsWith(prefix) ? link : links.find((candidate) => candidate.name.startsWith(prefix));
}

/**
 * Returns the link of a name; undefined if there is none. In a sharded directory only the shards on
 * the path are read.
 */
export async function lookup(directory: UnixfsNode, name: string, read: ReadBlock): Promise<PbLink | undefined> {
  if (directory.unixfs.type !== "HAMTShard") return directory.links.find((link) => link.name === name);
  const fanout = directory.unixfs.fanout ?? SHARD_WIDTH;
  const digits = digitsFor(fanout);
  const slots = slotsAlong(shardPath(name), fanout);
  let node = directory;
  // Most names need two levels only.
  for (let depth = 0; depth < slots.length; depth += 1) {
    const prefix = slotPrefix(slots[depth] as number, fanout);
    const link = linkIn(node, prefix);
    if (link === undefined) return undefined;
    if (link.name.length > digits) {
      return link.name.slice(digits) === name ? { ...link, name } : undefined;
    }
    const coming = readSoon(read, link.cid);
    node = shardOf(link, coming instanceof Promise ? await coming : coming);
  }
  throw failure("SHARD_TOO_DEEP");
}
