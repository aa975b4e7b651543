/** Reads the entries of directories, plain and sharded. */
import { CidSet } from "../../formats/cid/set.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { NodeError } from "../../util/errors.ts";
import { type ReadBlock, readSoon } from "../dag/reader.ts";
import { type UnixfsNode, unixfsNode } from "./node.ts";
import { digitsFor, SHARD_WIDTH, shardPath, slotPrefix, slotsAlong } from "./shard.ts";

const MAX_READAHEAD = 8;

async function shardNode(link: PbLink, read: ReadBlock): Promise<UnixfsNode> {
  return shardOf(link, await read(link.cid));
}

function shardOf(link: PbLink, bytes: Uint8Array): UnixfsNode {
  const node = unixfsNode(link.cid, bytes);
  if (node?.unixfs.type !== "HAMTShard") throw new NodeError("expected protobuf dag node");
  return node;
}

/**
 * The links of a directory under their real names: in stored order in a plain directory, in the order of the HAMT in a
 * sharded one. A million entries take little more memory than one shard of each level. A shard that is linked twice is
 * listed once.
 */
export async function* entries(directory: UnixfsNode, read: ReadBlock): AsyncGenerator<PbLink, void, undefined> {
  if (directory.unixfs.type !== "HAMTShard") {
    yield* directory.links;
    return;
  }
  const prefix = digitsFor(directory.unixfs.fanout ?? SHARD_WIDTH);
  const stack = directory.links.toReversed();
  const asked = new Map<PbLink, Promise<UnixfsNode>>();
  // In a valid directory no shard is met twice, since each entry has one place.
  const seen = new CidSet();
  for (let link = stack.pop(); link !== undefined; link = stack.pop()) {
    if (link.name.length > prefix) {
      yield { ...link, name: link.name.slice(prefix) };
      continue;
    }
    const reading = asked.get(link);
    asked.delete(link);
    if (!seen.add(link.cid)) continue;
    const own = reading ?? shardNode(link, read);
    for (let at = stack.length - 1; at >= 0 && asked.size < MAX_READAHEAD; at -= 1) {
      const next = stack[at] as PbLink;
      if (next.name.length > prefix || asked.has(next)) continue;
      const ahead = shardNode(next, read);
      ahead.catch(() => {});
      asked.set(next, ahead);
    }
    const { links } = await own;
    // Not by spreading: there may be more of them than a call can have arguments.
    for (let at = links.length - 1; at >= 0; at -= 1) stack.push(links[at] as PbLink);
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

/** The link of a name; undefined when there is none. In a sharded directory only the shards on the way are read. */
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
  throw new NodeError("sharded directory too deep");
}
