/** Builds directories from their entries. */
import { dagPb } from "../../formats/cid/codecs.ts";
import { compareNames, encodeLink, type PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { NODE_DATA_TAG } from "../../formats/dag_pb/field_numbers.ts";
import { fieldLength, writeField } from "../../formats/protobuf/fields.ts";
import { encodeUnixfs, type ModeAndTime } from "../../formats/unixfs/format.ts";
import { NodeError } from "../../util/errors.ts";
import { type BlockSink, type Built, type CidSettings, cidOf } from "./build.ts";
import { ShardBuilder, type ShardSettings, shardPath } from "./shard.ts";
import { DirectorySize, type Sharding, type ShardLimits } from "./sharding.ts";

export interface DirectorySettings extends ShardSettings {
  readonly sharded: Sharding;
}

export const duplicateEntry = (): NodeError => new NodeError("FILE_EXISTS", "directory already has entry by that name");

/** An entry with its sort key: see `entryKey`. */
export type KeyedEntry = readonly [key: string, built: Built];

/** Number of hexadecimal digits of a path through the HAMT. */
const pathDigits = 16;

/** The key by which the entries of a directory are sorted. */
export const entryKey = (name: string, sharded: boolean): string =>
  sharded ? Buffer.from(shardPath(name)).toString("hex") + name : name;

/** Builds a directory from entries in any order. Their names must be distinct. */
export async function buildDirectory(
  links: readonly PbLink[],
  settings: DirectorySettings,
  sink: BlockSink,
  facts?: ModeAndTime,
): Promise<Built> {
  const { sharded } = settings;
  const ordered = (inHamt: boolean) => [
    links
      .map((link): KeyedEntry => [entryKey(link.name, inHamt), link])
      .sort(([one], [other]) => compareNames(one, other)),
  ];
  if (typeof sharded === "boolean") return buildOrdered(ordered(sharded), { ...settings, sharded }, sink, facts);
  const plain = await buildPlain(ordered(false), settings, sink, { facts, limits: sharded });
  return plain ?? buildOrdered(ordered(true), { ...settings, sharded: true }, sink, facts);
}

type Pages = AsyncIterable<readonly KeyedEntry[]> | Iterable<readonly KeyedEntry[]>;

/**
 * Builds a directory from entries that are sorted by key, in constant memory if it is sharded. A
 * directory without entries is plain.
 */
export async function buildOrdered(
  pages: Pages,
  settings: ShardSettings & { readonly sharded: boolean },
  sink: BlockSink,
  facts?: ModeAndTime,
): Promise<Built> {
  if (!settings.sharded) return (await buildPlain(pages, settings, sink, { facts })) as Built;
  let shards: ShardBuilder | undefined;
  for await (const page of pages) {
    for (const [key, { cid, size }] of page) {
      shards ??= new ShardBuilder(settings, sink);
      const path = Buffer.from(key.slice(0, pathDigits), "hex");
      const stored = shards.add({ name: key.slice(pathDigits), size, cid }, path);
      if (stored !== undefined) await stored;
    }
  }
  return shards === undefined ? new PlainBuilder().end(settings, sink, facts) : shards.end(facts);
}

export interface PlainOptions {
  readonly facts?: ModeAndTime | undefined;
  /** Stops building beyond these limits. */
  readonly limits?: ShardLimits | undefined;
}

/**
 * Builds a directory in one block, from entries that are sorted by name. Returns undefined if it
 * exceeds the limits.
 */
export async function buildPlain(
  pages: Pages,
  settings: CidSettings,
  sink: BlockSink,
  { facts, limits }: PlainOptions,
): Promise<Built | undefined> {
  const plain = new PlainBuilder();
  const total = limits && new DirectorySize(directoryData(facts).length);
  for await (const page of pages) {
    for (const [name, { cid, size }] of page) {
      const link = { name, size, cid };
      const encoded = plain.add(link);
      total?.add(link, encoded);
      if (limits !== undefined && total?.exceeds(limits)) return undefined;
    }
  }
  return plain.end(settings, sink, facts);
}

/** Returns the encoded data field of a node. */
export function dataField(data: Uint8Array): Uint8Array {
  const field = new Uint8Array(fieldLength(data.length));
  writeField(field, 0, NODE_DATA_TAG, data);
  return field;
}

/** The encoded data field of a plain directory. */
export const directoryData = (facts: ModeAndTime | undefined): Uint8Array =>
  facts === undefined ? plainData : dataField(encodeUnixfs({ ...facts, type: "Directory" }));

const plainData = directoryData({});
const MIN_CAPACITY = 512;

/** Builds a directory in one block, from its encoded links. */
class PlainBuilder {
  #bytes = new Uint8Array();
  #end = 0;
  /** Sum of the sizes of all links. */
  #below = 0;

  /** Returns the number of bytes of the encoded link. */
  add(link: PbLink): number {
    const field = encodeLink(link);
    this.#put(field);
    this.#below += link.size;
    return field.length;
  }

  async end(settings: CidSettings, sink: BlockSink, facts?: ModeAndTime): Promise<Built> {
    this.#put(directoryData(facts));
    const bytes = this.#bytes.subarray(0, this.#end);
    const cid = await cidOf(dagPb, bytes, settings);
    await sink({ cid, bytes });
    return { cid, size: bytes.length + this.#below };
  }

  #put(field: Uint8Array): void {
    const end = this.#end + field.length;
    if (end > this.#bytes.length) {
      const room = Math.max(MIN_CAPACITY, this.#bytes.length * 2, end);
      this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(room));
    }
    this.#bytes.set(field, this.#end);
    this.#end = end;
  }
}
