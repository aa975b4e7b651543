/** Reads the entries of directories, plain and sharded. */
import { CidSet } from "../../formats/cid/set.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { failure } from "../../util/errors.ts";
import { type ReadBlock, readSoon } from "../dag/reader.ts";
import { type UnixfsNode, unixfsNode } from "./node.ts";
import { digitsFor, SHARD_WIDTH, shardPath, slotPrefix, slotsAlong } from "./shard.ts";

/** Shards that are waited for, and those that are taken at once where they are at hand. */
const MAX_READAHEAD = 8;
const MAX_AT_HAND = 16;
/** Entries of small shards that are given together. */
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
 * The links of a directory under their real names: in stored order in a plain directory, in the
 * order of the HAMT in a sharded one. A million entries take little more memory than one shard of
 * each level. A shard that is linked twice is listed once.
 */
export async function* entries(directory: UnixfsNode, read: ReadBlock): AsyncGenerator<PbLink, void, undefined> {
  for await (const page of entryPages(directory, read)) yield* page;
}

/** As `entries`, in pages: none is kept back while a shard has to be waited for. */
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
  const asked = new Map<PbLink, UnixfsNode | Promise<UnixfsNode>>();
  // In a valid directory no shard is met twice, since each entry has one place.
  const seen = new CidSet();
  let page: PbLink[] = [];
  for (let link = stack.pop(); link !== undefined; link = stack.pop()) {
    if (link.name.length > prefix) {
      page.push({ name: link.name.slice(prefix), size: link.size, cid: link.cid });
      continue;
    }
    if (!asked.has(link)) askAhead(link, stack, prefix, asked, read);
    const own = asked.get(link) as UnixfsNode | Promise<UnixfsNode>;
    asked.delete(link);
    if (!seen.add(link.cid)) continue;
    if (page.length > 0 && (own instanceof Promise || page.length >= MIN_PAGE)) {
      yield page;
      page = [];
    }
    const { links } = own instanceof Promise ? await own : own;
    // Not by spreading: there may be more of them than a call can have arguments.
    for (let at = links.length - 1; at >= 0; at -= 1) stack.push(links[at] as PbLink);
  }
  if (page.length > 0) yield page;
}

/** Asks for a shard, and for those among the next links for which there is room. */
function askAhead(
  link: PbLink,
  next: readonly PbLink[],
  prefix: number,
  asked: Map<PbLink, UnixfsNode | Promise<UnixfsNode>>,
  read: ReadBlock,
): void {
  const wanted = [link];
  for (let at = next.length - 1; at >= 0 && wanted.length + asked.size < MAX_AT_HAND; at -= 1) {
    const one = next[at] as PbLink;
    if (one.name.length <= prefix && !asked.has(one)) wanted.push(one);
  }
  const here = read.peek?.(wanted.map(({ cid }) => cid)) ?? [];
  for (const [at, one] of wanted.entries()) {
    const node = shardHere(one, here[at]);
    if (node === undefined && at > 0 && asked.size >= MAX_READAHEAD) continue;
    const coming = node ?? shardNode(one, read);
    if (coming instanceof Promise) coming.catch(() => {});
    asked.set(one, coming);
  }
}

/** Undefined also for what is no shard, which reading it tells of. */
function shardHere(link: PbLink, bytes: Uint8Array | undefined): UnixfsNode | undefined {
  try {
    return bytes && shardOf(link, bytes);
  } catch {
    return undefined;
  }
}

/** The link of a slot: where they stand in their order, as they should, with few steps. */
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
 * The link of a name; undefined when there is none. In a sharded directory only the shards on the
 * way are read.
 */
export async function lookup(directory: UnixfsNode, name: string, read: ReadBlock): Promise<PbLink | undefined> {
  if (directory.unixfs.type !== "HAMTShard") return directory.links.find((link) => link.name === name);
  const fanout = directory.unixfs.fanout ?? SHARD_WIDTH;
  const digits = digitsFor(fanout);
  const slots = slotsAlong(shardPath(name), fanout);
  let node = directory;
  // Mostly two levels are needed.
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
