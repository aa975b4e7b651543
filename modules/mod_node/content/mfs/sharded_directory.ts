/**
 * A sharded directory ("HAMT" of the "UnixFS specification"). Only the shards on the way to changed names are held in
 * memory, until they are stored. Shards are split and merged as in the reference.
 */

import type { CID } from "multiformats/cid";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { cumulativeSize } from "../../formats/dag_pb/dag_pb.ts";
import { NodeError } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import type { BlockSink, Built, CidSettings } from "../unixfs/build.ts";
import { type UnixfsNode, unixfsNode } from "../unixfs/node.ts";
import { buildShard, MURMUR3_CODE, prefixLength, SHARD_WIDTH, shardPath, slotPrefix } from "../unixfs/shard.ts";
import { settingsOf } from "./cid_settings.ts";
import type { Directory, OnStored } from "./directory.ts";

/** An entry under its own name; a link to a shard that is not loaded has an empty name. */
type Slot = PbLink | Shard;

const tooDeep = () => new NodeError("sharded directory too deep");

export class ShardedDirectory implements Directory {
  readonly #root: Shard;
  readonly #read: ReadBlock;

  private constructor(root: Shard, read: ReadBlock) {
    this.#root = root;
    this.#read = read;
  }

  /** @throws NodeError for a shard of a kind that the reference does not make */
  static open(node: UnixfsNode, read: ReadBlock): ShardedDirectory {
    return new ShardedDirectory(Shard.of(node), read);
  }

  /** A sharded directory with the entries of a plain one. */
  static from(links: Iterable<PbLink>, settings: CidSettings, read: ReadBlock): ShardedDirectory {
    const directory = new ShardedDirectory(new Shard(settings), read);
    for (const link of links) directory.set(link);
    return directory;
  }

  async find(name: string): Promise<PbLink | undefined> {
    let shard = this.#root;
    for (const slot of shardPath(name)) {
      const found = shard.slots.get(slot);
      if (found === undefined) return undefined;
      if (found instanceof Shard) shard = found;
      else if (found.name !== "") return found.name === name ? found : undefined;
      else shard = shard.load(slot, await openShard(found.cid, this.#read));
    }
    throw tooDeep();
  }

  set(link: PbLink): void {
    this.#root.set(link, shardPath(link.name), 0);
  }

  remove(name: string): boolean {
    return this.#root.remove(name, shardPath(name), 0);
  }

  write(settings: CidSettings, sink: BlockSink, settled: OnStored[]): Promise<Built> {
    this.#root.changeSettings(settings);
    return this.#root.write(sink, settled);
  }
}

async function openShard(cid: CID, read: ReadBlock): Promise<Shard> {
  const node = unixfsNode(cid, await read(cid));
  if (node?.unixfs.type !== "HAMTShard") throw new NodeError("node was not a dir shard");
  return Shard.of(node);
}

class Shard {
  /** By slot number; names are without prefix. A link with an empty name is a shard below. */
  readonly slots = new Map<number, Slot>();
  #settings: CidSettings;
  /** Undefined when it has changed since it was stored. */
  #built: Built | undefined;

  constructor(settings: CidSettings) {
    this.#settings = settings;
  }

  static of({ cid, length, links, unixfs }: UnixfsNode): Shard {
    if (unixfs.hashType !== MURMUR3_CODE) throw new NodeError("only murmur3 supported as hash function");
    if (unixfs.fanout !== SHARD_WIDTH) throw new NodeError(`only shards of ${SHARD_WIDTH} slots can be changed`);
    const shard = new Shard(settingsOf(cid));
    for (const link of links) {
      const slot = Number.parseInt(link.name.slice(0, prefixLength), 16);
      if (Number.isNaN(slot)) throw new NodeError(`invalid link name '${link.name}'`);
      shard.slots.set(slot, { ...link, name: link.name.slice(prefixLength) });
    }
    shard.#built = { cid, size: cumulativeSize({ length, links }) };
    return shard;
  }

  load(slot: number, shard: Shard): Shard {
    this.slots.set(slot, shard);
    return shard;
  }

  changeSettings(settings: CidSettings): void {
    const { version, hash } = this.#settings;
    if (settings.version === version && settings.hash === hash) return;
    this.#settings = settings;
    this.#built = undefined;
  }

  set(link: PbLink, path: Uint8Array, depth: number): void {
    if (depth >= path.length) throw tooDeep();
    this.#built = undefined;
    const at = path[depth] as number;
    const found = this.slots.get(at);
    if (found instanceof Shard) {
      found.set(link, path, depth + 1);
    } else if (found === undefined || found.name === link.name) {
      this.slots.set(at, link);
    } else {
      // Two names in one slot: both move one level down.
      const below = new Shard(this.#settings);
      below.set(found, shardPath(found.name), depth + 1);
      below.set(link, path, depth + 1);
      this.slots.set(at, below);
    }
  }

  remove(name: string, path: Uint8Array, depth: number): boolean {
    const at = path[depth] as number;
    const found = this.slots.get(at);
    if (found === undefined) return false;
    if (!(found instanceof Shard)) {
      if (found.name !== name) return false;
      this.slots.delete(at);
    } else {
      if (!found.remove(name, path, depth + 1)) return false;
      const [only, more] = found.slots.values();
      if (only === undefined) this.slots.delete(at);
      // The last entry of a shard moves up into the slot of the shard.
      else if (more === undefined && !(only instanceof Shard) && only.name !== "") this.slots.set(at, only);
    }
    this.#built = undefined;
    return true;
  }

  async write(sink: BlockSink, settled: OnStored[]): Promise<Built> {
    if (this.#built !== undefined) return this.#built;
    const links: PbLink[] = [];
    for (const [slot, found] of [...this.slots].sort(([one], [other]) => one - other)) {
      if (!(found instanceof Shard)) {
        links.push({ ...found, name: slotPrefix(slot) + found.name });
        continue;
      }
      const built = await found.write(sink, settled);
      links.push({ ...built, name: slotPrefix(slot) });
      settled.push(() => this.slots.set(slot, { ...built, name: "" }));
    }
    const built = await buildShard(links, this.#settings, sink);
    settled.push(() => {
      this.#built = built;
    });
    return built;
  }
}
