/** Builds directories from their entries. */
import { dagPb } from "../../formats/cid/codecs.ts";
import { compareNames, encodeLink, type PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { NODE_DATA_TAG } from "../../formats/dag_pb/field_numbers.ts";
import { writeField } from "../../formats/protobuf/fields.ts";
import { encodeUnixfs } from "../../formats/unixfs/format.ts";
import { NodeError } from "../../util/errors.ts";
import { type BlockSink, type Built, type CidSettings, cidOf } from "./build.ts";
import { ShardBuilder, shardPath } from "./shard.ts";

export interface DirectorySettings extends CidSettings {
  /** Build every directory that has entries as a HAMT, as `Experimental.ShardingEnabled` says. */
  readonly sharded: boolean;
}

export const duplicateEntry = (): NodeError => new NodeError("directory already has entry by that name");

/** An entry with its sort key: see `entryKey`. */
export type KeyedEntry = readonly [key: string, built: Built];

/** Hexadecimal digits of a path through the HAMT. */
const pathDigits = 16;

/** The key by which the entries of a directory are sorted. */
export const entryKey = (name: string, sharded: boolean): string =>
  sharded ? Buffer.from(shardPath(name)).toString("hex") + name : name;

/** Entries in any order, with distinct names. */
export function buildDirectory(links: readonly PbLink[], settings: DirectorySettings, sink: BlockSink): Promise<Built> {
  const keyed = links.map((link): KeyedEntry => [entryKey(link.name, settings.sharded), link]);
  return buildOrdered([keyed.sort(([one], [other]) => compareNames(one, other))], settings, sink);
}

/** Entries sorted by key; a sharded directory is built in constant memory. */
export async function buildOrdered(
  pages: AsyncIterable<readonly KeyedEntry[]> | Iterable<readonly KeyedEntry[]>,
  settings: DirectorySettings,
  sink: BlockSink,
): Promise<Built> {
  let shards: ShardBuilder | undefined;
  const plain = new PlainBuilder();
  for await (const page of pages) {
    for (const [key, { cid, size }] of page) {
      if (!settings.sharded) {
        plain.add({ name: key, size, cid });
        continue;
      }
      shards ??= new ShardBuilder(settings, sink);
      const path = Buffer.from(key.slice(0, pathDigits), "hex");
      const stored = shards.add({ name: key.slice(pathDigits), size, cid }, path);
      if (stored !== undefined) await stored;
    }
  }
  return shards === undefined ? plain.end(settings, sink) : shards.end();
}

const plainData = encodeUnixfs({ type: "Directory" });
const dataField = new Uint8Array(2 + plainData.length);
writeField(dataField, 0, NODE_DATA_TAG, plainData);
const MIN_CAPACITY = 512;

/** A directory in one block, kept as its encoded links. */
class PlainBuilder {
  #bytes = new Uint8Array();
  #end = 0;
  /** Sum of the sizes of all links. */
  #below = 0;

  add(link: PbLink): void {
    this.#put(encodeLink(link));
    this.#below += link.size;
  }

  async end(settings: CidSettings, sink: BlockSink): Promise<Built> {
    this.#put(dataField);
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
