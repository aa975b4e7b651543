/** Sharded directories: names spread over a trie by their hash (storage section 2, "Sharded directories"). */
import { murmur3128 } from "@multiformats/murmur3";
import { compareNames, type PbLink } from "../dag/pb.ts";
import { NodeError } from "../errors.ts";
import { type BlockSink, type Built, buildNode, type CidSettings } from "./build.ts";
import { encodeUnixfs } from "./format.ts";

export const shardHash = 0x22;
export const shardWidth = 256;
/** Digits in front of link names. */
export const prefixLength = 2;
const deepest = 8;

/** The slot of a name at each level of the trie. */
export function shardPath(name: string): Uint8Array {
  return (murmur3128.encode(Buffer.from(name)) as Uint8Array).subarray(0, deepest);
}

/** Two upper-case digits: what links of a slot begin with. */
export const slotPrefix = (slot: number): string => slot.toString(16).toUpperCase().padStart(prefixLength, "0");

/** The bit field of used slots: big-endian, without leading zero bytes. */
export function slotBits(slots: Iterable<number>): Uint8Array {
  const bits = new Uint8Array(shardWidth / 8);
  for (const slot of slots) {
    const at = bits.length - 1 - (slot >> 3);
    bits[at] = (bits[at] as number) | (1 << (slot & 7));
  }
  const first = bits.findIndex((byte) => byte !== 0);
  return first < 0 ? new Uint8Array() : bits.subarray(first);
}

interface Entry {
  readonly link: PbLink;
  readonly path: Uint8Array;
}

/** A shard node over links that carry their slot's digits. */
export function buildShard(links: readonly PbLink[], settings: CidSettings, sink: BlockSink): Promise<Built> {
  const slots = links.map(({ name }) => Number.parseInt(name.slice(0, prefixLength), 16));
  // An empty bit field is none.
  const bits = slots.length === 0 ? undefined : slotBits(slots);
  const data = encodeUnixfs({ type: "HAMTShard", data: bits, hashType: shardHash, fanout: shardWidth });
  return buildNode({ data, links }, settings, sink);
}

/** The trie of all links of a directory; names are distinct. */
export function buildShards(links: readonly PbLink[], settings: CidSettings, sink: BlockSink): Promise<Built> {
  return level(
    links.map((link) => ({ link, path: shardPath(link.name) })),
    0,
    settings,
    sink,
  );
}

async function level(entries: readonly Entry[], depth: number, settings: CidSettings, sink: BlockSink): Promise<Built> {
  if (depth >= deepest) throw new NodeError("sharded directory too deep");
  const slots = Map.groupBy(entries, ({ path }) => path[depth] as number);
  const links: PbLink[] = [];
  for (const [slot, members] of slots) {
    const prefix = slotPrefix(slot);
    const [only] = members;
    if (members.length === 1 && only !== undefined) {
      links.push({ ...only.link, name: prefix + only.link.name });
    } else {
      links.push({ ...(await level(members, depth + 1, settings, sink)), name: prefix });
    }
  }
  links.sort((one, other) => compareNames(one.name, other.name));
  return buildShard(links, settings, sink);
}
