/**
 * Sharded directories: a trie distributes names by their hash ("HAMT" of the "UnixFS
 * specification").
 */
import { murmur3128 } from "@multiformats/murmur3";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { encodeUnixfs, type ModeAndTime } from "../../formats/unixfs/format.ts";
import { textBytes } from "../../util/byte_text.ts";
import { failure } from "../../util/errors.ts";
import { type BlockSink, type Built, buildNode, type CidSettings } from "./build.ts";

export const MURMUR3_CODE = 0x22;
/** Default number of slots of a shard. */
export const SHARD_WIDTH = 256;
/** Number of bytes of the hash that are used. */
const HASH_LENGTH = 8;

/**
 * Returns the hash of a name, which is its path through a HAMT of any fan-out. Entries that are
 * sorted by it have the order of the HAMT.
 */
export function shardPath(name: string): Uint8Array {
  return (murmur3128.encode(textBytes(name)) as Uint8Array).subarray(0, HASH_LENGTH);
}

/** Number of digits before the names of links in a shard with that many slots. */
export const digitsFor = (fanout: number): number => (fanout === SHARD_WIDTH ? 2 : (fanout - 1).toString(16).length);

/** Whether a shard can have that many slots. */
export function isFanout(fanout: number): boolean {
  const bits = Math.log2(fanout);
  return Number.isInteger(bits) && bits >= 3 && bits <= 10;
}

/**
 * Returns the slot at each level of a HAMT.
 *
 * @throws NodeError for a fan-out that is not a power of two from 8 to 1024
 */
export function slotsAlong(path: Uint8Array, fanout: number): ArrayLike<number> {
  if (fanout === SHARD_WIDTH) return path;
  if (!isFanout(fanout)) throw failure("UNIXFS_INVALID", { reason: `a shard of ${fanout} slots` });
  const bits = Math.log2(fanout);
  const hash = Buffer.from(path).readBigUInt64BE();
  const width = HASH_LENGTH * 8;
  return Uint16Array.from({ length: Math.floor(width / bits) }, (_, depth) =>
    Number((hash >> BigInt(width - bits * (depth + 1))) & BigInt(fanout - 1)),
  );
}

/** Upper-case digits at the beginning of the names of a slot's links. */
export const slotPrefix = (slot: number, fanout = SHARD_WIDTH): string =>
  slot.toString(16).toUpperCase().padStart(digitsFor(fanout), "0");

/** Encodes the bit field of used slots: big-endian, without leading zero bytes. */
function slotBits(slots: Iterable<number>, fanout: number): Uint8Array {
  const bits = new Uint8Array(fanout / 8);
  for (const slot of slots) {
    const at = bits.length - 1 - (slot >> 3);
    bits[at] = (bits[at] as number) | (1 << (slot & 7));
  }
  const first = bits.findIndex((byte) => byte !== 0);
  return first < 0 ? new Uint8Array() : bits.subarray(first);
}

export interface ShardSettings extends CidSettings {
  /** Number of slots of a shard; `SHARD_WIDTH` by default. */
  readonly fanout?: number | undefined;
}

/**
 * Builds a shard from links whose names begin with the digits of their slots. Only the first shard
 * of a directory has mode and time.
 */
export function buildShard(
  links: readonly PbLink[],
  settings: ShardSettings,
  sink: BlockSink,
  facts?: ModeAndTime,
): Promise<Built> {
  const { fanout = SHARD_WIDTH } = settings;
  const digits = digitsFor(fanout);
  const slots = links.map(({ name }) => Number.parseInt(name.slice(0, digits), 16));
  // An empty bit field is left out.
  const bits = slots.length === 0 ? undefined : slotBits(slots, fanout);
  const data = encodeUnixfs({ ...facts, type: "HAMTShard", data: bits, hashType: MURMUR3_CODE, fanout });
  return buildNode({ data, links }, settings, sink);
}

/** Number of levels at which two entries have the same slot. */
function sharedDepth(one: ArrayLike<number>, other: ArrayLike<number>): number {
  let depth = 0;
  while (depth < one.length && one[depth] === other[depth]) depth += 1;
  if (depth === one.length) throw failure("SHARD_TOO_DEEP");
  return depth;
}

interface ShardEntry {
  readonly link: PbLink;
  readonly slots: ArrayLike<number>;
}

/**
 * Builds a HAMT from links in its order, with distinct names. Only the shards on the path to the
 * last link stay in memory. Each shard is passed to the sink when it is complete.
 */
export class ShardBuilder {
  readonly #settings: ShardSettings;
  readonly #fanout: number;
  readonly #sink: BlockSink;
  /** Links of the open shards, from the root down. */
  readonly #open: PbLink[][] = [[]];
  #last: ShardEntry | undefined;
  /** Number of levels that the last entry shares with the one before it. */
  #shared = 0;

  constructor(settings: ShardSettings, sink: BlockSink) {
    this.#settings = settings;
    this.#fanout = settings.fanout ?? SHARD_WIDTH;
    this.#sink = sink;
  }

  /**
   * Adds a link; `path` is the `shardPath` of its name. Callers await the result.
   *
   * @throws NodeError when more levels would be needed than a HAMT has
   */
  add(link: PbLink, path: Uint8Array): Promise<void> | undefined {
    const entry = { link, slots: slotsAlong(path, this.#fanout) };
    const last = this.#last;
    this.#last = entry;
    if (last === undefined) return undefined;
    const shared = sharedDepth(last.slots, entry.slots);
    this.#append(last, Math.max(this.#shared, shared));
    this.#shared = shared;
    return this.#open.length - 1 > shared ? this.#close(last.slots, shared) : undefined;
  }

  async end(facts?: ModeAndTime): Promise<Built> {
    const last = this.#last;
    if (last !== undefined) {
      this.#append(last, this.#shared);
      await this.#close(last.slots, 0);
    }
    return buildShard(this.#open[0] as PbLink[], this.#settings, this.#sink, facts);
  }

  /**
   * Adds an entry to the open shard at a depth: the first one where no other entry has its slot.
   */
  #append({ link, slots }: ShardEntry, depth: number): void {
    while (this.#open.length <= depth) this.#open.push([]);
    this.#open[depth]?.push({ ...link, name: slotPrefix(slots[depth] as number, this.#fanout) + link.name });
  }

  /** Passes the shards below a depth to the sink. */
  async #close(slots: ArrayLike<number>, depth: number): Promise<void> {
    while (this.#open.length - 1 > depth) {
      const built = await buildShard(this.#open.pop() as PbLink[], this.#settings, this.#sink);
      const above = this.#open.length - 1;
      this.#open[above]?.push({ ...built, name: slotPrefix(slots[above] as number, this.#fanout) });
    }
  }
}
