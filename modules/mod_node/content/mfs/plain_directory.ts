/**
 * A directory in one block, in its encoded form. Entries are found by binary search and inserted or
 * removed in place. So a change moves bytes but decodes nothing, however many entries there are.
 */
import { dagPb } from "../../formats/cid/codecs.ts";
import { decodeLink, decodePb, encodeLink, encodePb, type PbLink, pbData } from "../../formats/dag_pb/dag_pb.ts";
import {
  LINK_HASH_TAG,
  LINK_NAME_TAG,
  LINK_TSIZE_TAG,
  NODE_DATA_TAG,
  NODE_LINKS_TAG,
} from "../../formats/dag_pb/field_numbers.ts";
import { FieldReader } from "../../formats/protobuf/fields.ts";
import { decodeUnixfs, encodeUnixfs, type ModeAndTime, type Unixfs } from "../../formats/unixfs/format.ts";
import { textBytes } from "../../util/byte_text.ts";
import { type BlockSink, type Built, type CidSettings, cidOf } from "../unixfs/build.ts";
import { dataField, directoryData } from "../unixfs/directory.ts";
import { DirectorySize, type ShardLimits } from "../unixfs/sharding.ts";
import type { Directory } from "./directory.ts";

const MIN_CAPACITY = 256;

export class PlainDirectory implements Directory {
  /** Encoded links, sorted by name. */
  #links: Buffer;
  #end: number;
  /** Offset of each link. */
  #starts: Uint32Array;
  #count: number;
  /** Sum of the sizes of all links. */
  #below = 0;
  /** The data field. It follows the links. */
  #data: Uint8Array;
  /** Calculated on first use. */
  #size: DirectorySize | undefined;

  /** @throws NodeError when the bytes are not a dag-pb node */
  constructor(block: Uint8Array) {
    const scanned = scan(block) ?? (scan(encodePb(decodePb(block))) as Scanned);
    const { bytes, starts, end, below } = scanned;
    this.#data = new Uint8Array(bytes.subarray(end));
    this.#starts = Uint32Array.from(starts);
    this.#count = starts.length;
    this.#end = end;
    this.#below = below;
    this.#links = Buffer.from(bytes.subarray(0, end));
  }

  /** Creates a directory from entries that are sorted by name. */
  static from(links: Iterable<PbLink>, facts: ModeAndTime): PlainDirectory {
    const directory = new PlainDirectory(directoryData(facts));
    for (const link of links) directory.set(link);
    return directory;
  }

  get facts(): ModeAndTime {
    const { mode, mtime } = this.#unixfs;
    return { mode, mtime };
  }

  set facts({ mode, mtime }: ModeAndTime) {
    const before = this.#data.length;
    this.#data = dataField(encodeUnixfs({ ...this.#unixfs, mode, mtime }));
    if (this.#data.length !== before) this.#size = undefined;
  }

  get #unixfs(): Unixfs {
    return decodeUnixfs(pbData(this.#data) ?? new Uint8Array());
  }

  exceeds(limits: ShardLimits): boolean {
    this.#size ??= this.#counted();
    return this.#size.exceeds(limits);
  }

  #counted(): DirectorySize {
    const size = new DirectorySize(this.#data.length);
    for (const link of this.links()) size.add(link);
    return size;
  }

  async find(name: string): Promise<PbLink | undefined> {
    const bytes = textBytes(name);
    const at = this.#lowerBound(bytes);
    return at < this.#count && this.#compare(at, bytes) === 0 ? this.#link(at) : undefined;
  }

  /** All entries, sorted by name. The directory must not change during the iteration. */
  *links(): Generator<PbLink> {
    for (let at = 0; at < this.#count; at += 1) yield this.#link(at);
  }

  set(link: PbLink): void {
    this.remove(link.name);
    const at = this.#lowerBound(textBytes(link.name));
    const field = encodeLink(link);
    const from = this.#start(at);
    this.#reserve(field.length);
    this.#links.copyWithin(from + field.length, from, this.#end);
    this.#links.set(field, from);
    this.#starts.copyWithin(at + 1, at, this.#count);
    this.#starts[at] = from;
    this.#count += 1;
    this.#shift(at + 1, field.length);
    this.#below += link.size;
    this.#size?.add(link, field.length);
  }

  remove(name: string): boolean {
    const bytes = textBytes(name);
    const at = this.#lowerBound(bytes);
    let removed = false;
    // Directories of other programs may have the same name twice.
    while (at < this.#count && this.#compare(at, bytes) === 0) {
      const from = this.#start(at);
      const next = this.#start(at + 1);
      const link = this.#link(at);
      this.#below -= link.size;
      this.#size?.remove(link, next - from);
      this.#links.copyWithin(from, next, this.#end);
      this.#starts.copyWithin(at, at + 1, this.#count);
      this.#count -= 1;
      this.#shift(at, from - next);
      removed = true;
    }
    return removed;
  }

  async write(settings: CidSettings, sink: BlockSink): Promise<Built> {
    const bytes = new Uint8Array(this.#end + this.#data.length);
    bytes.set(this.#links.subarray(0, this.#end));
    bytes.set(this.#data, this.#end);
    const cid = await cidOf(dagPb, bytes, settings);
    await sink({ cid, bytes });
    return { cid, size: bytes.length + this.#below };
  }

  #start(at: number): number {
    return at < this.#count ? (this.#starts[at] as number) : this.#end;
  }

  /** Decodes from a copy, because the bytes of the directory move. */
  #link(at: number): PbLink {
    const reader = new FieldReader(new Uint8Array(this.#links.subarray(this.#start(at), this.#start(at + 1))));
    reader.next();
    return decodeLink(reader.bytes);
  }

  /** Index of the first link whose name is not less. */
  #lowerBound(name: Buffer): number {
    let low = 0;
    let high = this.#count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(middle, name) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compare(at: number, name: Buffer): number {
    const [from, to] = nameIn(this.#links, this.#start(at));
    return this.#links.compare(name, 0, name.length, from, to);
  }

  #shift(from: number, by: number): void {
    for (let at = from; at < this.#count; at += 1) this.#starts[at] = (this.#starts[at] as number) + by;
    this.#end += by;
  }

  #reserve(more: number): void {
    if (this.#end + more > this.#links.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(MIN_CAPACITY, this.#links.length * 2, this.#end + more));
      grown.set(this.#links.subarray(0, this.#end));
      this.#links = grown;
    }
    if (this.#count === this.#starts.length) {
      const grown = new Uint32Array(Math.max(8, this.#count * 2));
      grown.set(this.#starts);
      this.#starts = grown;
    }
  }
}

interface Scanned {
  readonly bytes: Uint8Array;
  readonly starts: readonly number[];
  /** Offset of the end of the links, where the data begins. */
  readonly end: number;
  readonly below: number;
}

/** Returns undefined for a block that is not in canonical form. */
function scan(bytes: Uint8Array): Scanned | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const starts: number[] = [];
  let below = 0;
  let at = 0;
  for (let previous: CanonicalLink | undefined; buffer[at] === NODE_LINKS_TAG; ) {
    const link = canonicalLink(buffer, at);
    if (link === undefined) return undefined;
    if (previous !== undefined && buffer.compare(buffer, link.from, link.to, previous.from, previous.to) > 0) {
      return undefined;
    }
    starts.push(at);
    below += link.size;
    at = link.end;
    previous = link;
  }
  const isData = at === buffer.length || (buffer[at] === NODE_DATA_TAG && fieldEnd(buffer, at) === buffer.length);
  return isData ? { bytes, starts, end: at, below } : undefined;
}

interface CanonicalLink {
  /** Offsets of the name. */
  readonly from: number;
  readonly to: number;
  readonly size: number;
  readonly end: number;
}

/**
 * Parses a link that has exactly hash, name and size in that order. Returns undefined for any other
 * link.
 */
function canonicalLink(bytes: Buffer, at: number): CanonicalLink | undefined {
  const end = fieldEnd(bytes, at);
  const hash = varintAt(bytes, at + 1).next;
  if (bytes[hash] !== LINK_HASH_TAG) return undefined;
  const name = fieldEnd(bytes, hash);
  if (bytes[name] !== LINK_NAME_TAG) return undefined;
  const tsize = fieldEnd(bytes, name);
  if (bytes[tsize] !== LINK_TSIZE_TAG) return undefined;
  const size = varintAt(bytes, tsize + 1);
  if (size.next !== end || end > bytes.length) return undefined;
  return { from: varintAt(bytes, name + 1).next, to: tsize, size: size.value, end };
}

/** Offsets of the name in the link at an offset. */
function nameIn(bytes: Buffer, at: number): readonly [from: number, to: number] {
  const name = fieldEnd(bytes, varintAt(bytes, at + 1).next);
  const { value, next } = varintAt(bytes, name + 1);
  return [next, next + value];
}

function fieldEnd(bytes: Buffer, at: number): number {
  const { value, next } = varintAt(bytes, at + 1);
  return next + value;
}

/** Reads a varint. Bytes beyond the end count as zeros; the resulting offsets never match. */
function varintAt(bytes: Buffer, from: number): { readonly value: number; readonly next: number } {
  let value = 0;
  let scale = 1;
  for (let at = from; ; at += 1) {
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return { value, next: at + 1 };
    scale *= 128;
  }
}
