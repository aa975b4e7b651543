/** Sharded directories: names are spread over a trie by their hash ("HAMT" of the "UnixFS specification"). */
import { murmur3128 } from "@multiformats/murmur3";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { encodeUnixfs } from "../../formats/unixfs/format.ts";
import { NodeError } from "../../util/errors.ts";
import { type BlockSink, type Built, buildNode, type CidSettings } from "./build.ts";

export const MURMUR3_CODE = 0x22;
export const SHARD_WIDTH = 256;
/** Digits before the name of a link. */
export const prefixLength = 2;
const MAX_DEPTH = 8;

/** The slot of a name at each level of the HAMT. */
export function shardPath(name: string): Uint8Array {
  return (murmur3128.encode(Buffer.from(name)) as Uint8Array).subarray(0, MAX_DEPTH);
}

/** Digits before the names of links in a shard of so many slots. */
export const digitsFor = (fanout: number): number => (fanout - 1).toString(16).length;

/** Bits of the hash of a name. */
const HASH_BITS = MAX_DEPTH * 8;

/**
 * The slots of a name in a directory whose shards have another fan-out than ours, each as the digits of its links.
 *
 * @throws NodeError for a fan-out that is no power of two from 8 to 1024
 */
export function slotsOf(name: string, fanout: number): string[] {
  const bits = Math.log2(fanout);
  if (!Number.isInteger(bits) || bits < 3 || bits > 10) throw new NodeError(`a shard of ${fanout} slots`);
  const digits = digitsFor(fanout);
  const hash = Buffer.from(shardPath(name)).readBigUInt64BE();
  return Array.from({ length: Math.floor(HASH_BITS / bits) }, (_, depth) => {
    const slot = Number((hash >> BigInt(HASH_BITS - bits * (depth + 1))) & BigInt(fanout - 1));
    return slot.toString(16).toUpperCase().padStart(digits, "0");
  });
}

/** Two upper-case digits, with which the links of a slot begin. */
export const slotPrefix = (slot: number): string => slot.toString(16).toUpperCase().padStart(prefixLength, "0");

/** The bit field of used slots: big-endian, without leading zero bytes. */
function slotBits(slots: Iterable<number>): Uint8Array {
  const bits = new Uint8Array(SHARD_WIDTH / 8);
  for (const slot of slots) {
    const at = bits.length - 1 - (slot >> 3);
    bits[at] = (bits[at] as number) | (1 << (slot & 7));
  }
  const first = bits.findIndex((byte) => byte !== 0);
  return first < 0 ? new Uint8Array() : bits.subarray(first);
}

/** Builds a shard over links that have the digits of their slots. */
export function buildShard(links: readonly PbLink[], settings: CidSettings, sink: BlockSink): Promise<Built> {
  const slots = links.map(({ name }) => Number.parseInt(name.slice(0, prefixLength), 16));
  // An empty bit field is left out.
  const bits = slots.length === 0 ? undefined : slotBits(slots);
  const data = encodeUnixfs({ type: "HAMTShard", data: bits, hashType: MURMUR3_CODE, fanout: SHARD_WIDTH });
  return buildNode({ data, links }, settings, sink);
}

/** The number of levels at which two entries have the same slot. */
function sharedDepth(one: Uint8Array, other: Uint8Array): number {
  let depth = 0;
  while (depth < MAX_DEPTH && one[depth] === other[depth]) depth += 1;
  if (depth === MAX_DEPTH) throw new NodeError("sharded directory too deep");
  return depth;
}

interface Entry {
  readonly link: PbLink;
  readonly path: Uint8Array;
}

/**
 * Builds a HAMT from links in its order, with distinct names. Only the shards on the way to the last link are held;
 * each is handed to the sink when it is complete.
 */
export class ShardBuilder {
  readonly #settings: CidSettings;
  readonly #sink: BlockSink;
  /** Links of the open shards, from the root down. */
  readonly #open: PbLink[][] = [[]];
  #last: Entry | undefined;
  /** Levels that the last entry shares with the one before it. */
  #shared = 0;

  constructor(settings: CidSettings, sink: BlockSink) {
    this.#settings = settings;
    this.#sink = sink;
  }

  /**
   * `path` is the `shardPath` of its name. Callers await what it returns.
   *
   * @throws NodeError when it would need more levels than a HAMT has
   */
  add(link: PbLink, path: Uint8Array): Promise<void> | undefined {
    const entry = { link, path };
    const last = this.#last;
    this.#last = entry;
    if (last === undefined) return undefined;
    const shared = sharedDepth(last.path, entry.path);
    this.#place(last, Math.max(this.#shared, shared));
    this.#shared = shared;
    return this.#open.length - 1 > shared ? this.#close(last.path, shared) : undefined;
  }

  async end(): Promise<Built> {
    const last = this.#last;
    if (last !== undefined) {
      this.#place(last, this.#shared);
      await this.#close(last.path, 0);
    }
    return buildShard(this.#open[0] as PbLink[], this.#settings, this.#sink);
  }

  /** An entry is in the first shard where no other entry has its slot. */
  #place({ link, path }: Entry, depth: number): void {
    while (this.#open.length <= depth) this.#open.push([]);
    this.#open[depth]?.push({ ...link, name: slotPrefix(path[depth] as number) + link.name });
  }

  /** Hands the shards below a depth to the sink. */
  async #close(path: Uint8Array, depth: number): Promise<void> {
    while (this.#open.length - 1 > depth) {
      const built = await buildShard(this.#open.pop() as PbLink[], this.#settings, this.#sink);
      const above = this.#open.length - 1;
      this.#open[above]?.push({ ...built, name: slotPrefix(path[above] as number) });
    }
  }
}
