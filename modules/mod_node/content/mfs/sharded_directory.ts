/**
 * A sharded directory ("HAMT" of the "UnixFS specification"). Only the shards on the paths to
 * changed names stay in memory, until they are stored. Shards are split and merged as in the
 * reference.
 */

import type { CID } from "multiformats/cid";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { cumulativeSize } from "../../formats/dag_pb/dag_pb.ts";
import type { ModeAndTime } from "../../formats/unixfs/format.ts";
import { failure } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import type { BlockSink, Built, CidSettings } from "../unixfs/build.ts";
import { directoryData } from "../unixfs/directory.ts";
import { type UnixfsNode, unixfsNode } from "../unixfs/node.ts";
import {
  buildShard,
  digitsFor,
  isFanout,
  MURMUR3_CODE,
  SHARD_WIDTH,
  type ShardSettings,
  shardPath,
  slotPrefix,
  slotsAlong,
} from "../unixfs/shard.ts";
import { DirectorySize, type ShardLimits } from "../unixfs/sharding.ts";
import { settingsOf } from "./cid_settings.ts";
import type { Directory, OnStored } from "./directory.ts";

/**
 * An entry under its own name, or a shard. A link to a shard that is not loaded has an empty name.
 */
type Slot = PbLink | Shard;

/**
 * Entries are counted up to this multiple of the limits, so that the next removals need not count
 * again.
 */
const COUNTED_AHEAD = 2;

const tooDeep = () => failure("SHARD_TOO_DEEP");

export class ShardedDirectory implements Directory {
  readonly #root: Shard;
  readonly #read: ReadBlock;
  /**
   * Size of the entries that were counted: of all, or of enough to exceed the limits at that time.
   */
  #size: DirectorySize | undefined;

  private constructor(root: Shard, read: ReadBlock) {
    this.#root = root;
    this.#read = read;
  }

  /** @throws NodeError for a kind of shard that the reference does not create */
  static open(node: UnixfsNode, read: ReadBlock): ShardedDirectory {
    return new ShardedDirectory(Shard.of(node), read);
  }

  /** Creates a sharded directory with the entries of a plain one. */
  static from(
    links: Iterable<PbLink>,
    settings: ShardSettings,
    read: ReadBlock,
    facts: ModeAndTime = {},
  ): ShardedDirectory {
    const directory = new ShardedDirectory(new Shard(settings, facts), read);
    directory.#size = new DirectorySize(directoryData(facts).length);
    for (const link of links) directory.set(link);
    return directory;
  }

  get facts(): ModeAndTime {
    return this.#root.facts;
  }

  set facts(facts: ModeAndTime) {
    this.#root.facts = facts;
    this.#size = undefined;
  }

  async find(name: string): Promise<PbLink | undefined> {
    let shard = this.#root;
    const slots = shard.slotsOf(name);
    for (let depth = 0; depth < slots.length; depth += 1) {
      const slot = slots[depth] as number;
      const found = shard.slots.get(slot);
      if (found === undefined) return undefined;
      if (found instanceof Shard) shard = found;
      else if (found.name !== "") return found.name === name ? found : undefined;
      else shard = await shard.load(slot, found.cid, this.#read);
    }
    throw tooDeep();
  }

  set(link: PbLink): void {
    const replaced = this.#root.set(link, this.#root.slotsOf(link.name), 0);
    if (replaced !== undefined) this.#size?.remove(replaced);
    this.#size?.add(link);
  }

  remove(name: string): boolean {
    const removed = this.#root.remove(name, this.#root.slotsOf(name), 0);
    if (removed !== undefined) this.#size?.remove(removed);
    return removed !== undefined;
  }

  /**
   * Whether it would still exceed the limits without an entry. Only a part of a large directory is
   * read, and not again for each removal. If the directory fits the limits, all its shards are
   * loaded afterwards.
   */
  async exceedsWithout(link: PbLink, limits: ShardLimits): Promise<boolean> {
    // Without limits a sharded directory never becomes plain.
    if (limits.estimate === "disabled" && limits.maxLinks === 0) return true;
    const known = this.#size;
    known?.remove(link);
    const exceeds = known?.exceeds(limits);
    known?.add(link);
    if (exceeds) return true;
    const { threshold, maxLinks } = limits;
    const ample = { ...limits, threshold: threshold * COUNTED_AHEAD, maxLinks: maxLinks * COUNTED_AHEAD };
    const size = new DirectorySize(directoryData(this.facts).length);
    for await (const counted of this.#root.loadAll(this.#read)) {
      if (counted.name === link.name) continue;
      size.add(counted);
      if (size.exceeds(ample)) break;
    }
    const stays = size.exceeds(limits);
    size.add(link);
    this.#size = size;
    return stays;
  }

  /** Returns all entries. Shards that are not loaded are read. */
  all(): Promise<PbLink[]> {
    return Array.fromAsync(this.#root.loadAll(this.#read));
  }

  write(settings: CidSettings, sink: BlockSink, settled: OnStored[]): Promise<Built> {
    this.#root.changeSettings(settings);
    return this.#root.write(sink, settled);
  }
}

class Shard {
  /**
   * The slots by number. Names are without prefix. A link with an empty name leads to a shard
   * below.
   */
  readonly slots = new Map<number, Slot>();
  readonly #fanout: number;
  #settings: CidSettings;
  #facts: ModeAndTime;
  /** Undefined if the shard has changed since it was stored. */
  #built: Built | undefined;

  constructor({ fanout = SHARD_WIDTH, ...settings }: ShardSettings, facts: ModeAndTime = {}) {
    this.#settings = settings;
    this.#fanout = fanout;
    this.#facts = facts;
  }

  /** @throws NodeError for a kind of shard that the reference does not create */
  static of({ cid, length, links, unixfs }: UnixfsNode): Shard {
    const { hashType, fanout = 0, mode, mtime } = unixfs;
    if (hashType !== MURMUR3_CODE)
      throw failure("UNIXFS_INVALID", { reason: "only murmur3 supported as hash function" });
    if (!isFanout(fanout)) throw failure("UNIXFS_INVALID", { reason: `a shard of ${fanout} slots cannot be changed` });
    const shard = new Shard({ ...settingsOf(cid), fanout }, { mode, mtime });
    const digits = digitsFor(fanout);
    for (const link of links) {
      const slot = Number.parseInt(link.name.slice(0, digits), 16);
      if (Number.isNaN(slot)) throw failure("UNIXFS_INVALID", { reason: `invalid link name '${link.name}'` });
      shard.slots.set(slot, { ...link, name: link.name.slice(digits) });
    }
    shard.#built = { cid, size: cumulativeSize({ length, links }) };
    return shard;
  }

  get facts(): ModeAndTime {
    return this.#facts;
  }

  set facts(facts: ModeAndTime) {
    this.#facts = facts;
    this.#built = undefined;
  }

  slotsOf(name: string): ArrayLike<number> {
    return slotsAlong(shardPath(name), this.#fanout);
  }

  async load(slot: number, cid: CID, read: ReadBlock): Promise<Shard> {
    const node = unixfsNode(cid, await read(cid));
    if (node?.unixfs.type !== "HAMTShard") throw failure("UNIXFS_INVALID", { reason: "node was not a dir shard" });
    const shard = Shard.of(node);
    this.slots.set(slot, shard);
    return shard;
  }

  /** Yields the entries, and loads shards on the way. */
  async *loadAll(read: ReadBlock): AsyncGenerator<PbLink, void, undefined> {
    for (const [slot, found] of this.slots) {
      if (found instanceof Shard) yield* found.loadAll(read);
      else if (found.name !== "") yield found;
      else yield* (await this.load(slot, found.cid, read)).loadAll(read);
    }
  }

  changeSettings(settings: CidSettings): void {
    const { version, hash } = this.#settings;
    if (settings.version === version && settings.hash === hash) return;
    this.#settings = settings;
    this.#built = undefined;
  }

  /** Returns the entry that was replaced. */
  set(link: PbLink, path: ArrayLike<number>, depth: number): PbLink | undefined {
    if (depth >= path.length) throw tooDeep();
    this.#built = undefined;
    const at = path[depth] as number;
    const found = this.slots.get(at);
    if (found instanceof Shard) return found.set(link, path, depth + 1);
    if (found === undefined || found.name === link.name) {
      this.slots.set(at, link);
      return found;
    }
    // Two names in one slot: both move one level down.
    const below = new Shard({ ...this.#settings, fanout: this.#fanout });
    below.set(found, this.slotsOf(found.name), depth + 1);
    below.set(link, path, depth + 1);
    this.slots.set(at, below);
    return undefined;
  }

  /** Returns the entry that was removed. */
  remove(name: string, path: ArrayLike<number>, depth: number): PbLink | undefined {
    const at = path[depth] as number;
    const found = this.slots.get(at);
    if (found === undefined) return undefined;
    let removed: PbLink | undefined;
    if (!(found instanceof Shard)) {
      if (found.name !== name) return undefined;
      this.slots.delete(at);
      removed = found;
    } else {
      removed = found.remove(name, path, depth + 1);
      if (removed === undefined) return undefined;
      const [only, more] = found.slots.values();
      if (only === undefined) this.slots.delete(at);
      // The last entry of a shard moves up into the slot of the shard.
      else if (more === undefined && !(only instanceof Shard) && only.name !== "") this.slots.set(at, only);
    }
    this.#built = undefined;
    return removed;
  }

  async write(sink: BlockSink, settled: OnStored[]): Promise<Built> {
    if (this.#built !== undefined) return this.#built;
    const links: PbLink[] = [];
    const fanout = this.#fanout;
    for (const [slot, found] of [...this.slots].sort(([one], [other]) => one - other)) {
      if (!(found instanceof Shard)) {
        links.push({ ...found, name: slotPrefix(slot, fanout) + found.name });
        continue;
      }
      const built = await found.write(sink, settled);
      links.push({ ...built, name: slotPrefix(slot, fanout) });
      settled.push(() => this.slots.set(slot, { ...built, name: "" }));
    }
    const built = await buildShard(links, { ...this.#settings, fanout }, sink, this.#facts);
    settled.push(() => {
      this.#built = built;
    });
    return built;
  }
}
