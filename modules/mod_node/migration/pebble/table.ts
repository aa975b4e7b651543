/**
 * Reads the tables of a Pebble database: immutable files with sorted keys.
 *
 * Source: Pebble's `sstable/table.go` and `sstable/format.go`. The footer points to the index of
 * the data blocks and to the index of the meta blocks. Each block is followed by its compression
 * kind (1 byte) and a checksum (4).
 */
import { type FileHandle, open } from "node:fs/promises";
import { DatabaseDamaged, Fields, type Handle, maskedCrc } from "../lsm/fields.ts";
import type { Entry, Tombstone } from "./entry.ts";
import { type BlockFormat, blockFormat, expand, type IndexEntry, MAX_BLOCK, rowPairs } from "./table_blocks.ts";

const trailerLength = 5;
const magicLength = 8;
const crc32c = 1;
const rocksDb = Buffer.from("f7cff485b741e288", "hex");
const pebble = Buffer.from("f09faab3f09faab3", "hex");
/** Footer lengths by version. Versions 6 and 7 have a checksum before version and magic. */
const footerLengths: Readonly<Record<number, number>> = { 6: 57, 7: 61 };
const oldFooterLength = 53;
const newestVersion = 7;
/** Feature bits in the footer of version 7. */
const twoLevels = 1 << 5;

const names = {
  properties: "rocksdb.properties",
  rangeDeletions: ["rocksdb.range_del", "rocksdb.range_del2"],
  indexType: "rocksdb.block.based.table.index.type",
  /** Kinds of blocks that Kubo's configuration of Pebble never writes. */
  refused: ["pebble.range_key", "pebble.value_index", "pebble.blob_ref_index"],
} as const;
const twoLevelIndex = 2;

/**
 * An open table. Every method throws DatabaseDamaged, with the path, for data that cannot be read.
 */
export class Table {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #size: number;
  #format: BlockFormat = blockFormat(newestVersion);
  #index: Handle = { offset: 0, size: 0 };
  #hasTwoLevels = false;
  readonly tombstones: Tombstone[] = [];

  private constructor(path: string, file: FileHandle, size: number) {
    this.#path = path;
    this.#file = file;
    this.#size = size;
  }

  static async open(path: string): Promise<Table> {
    const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
      throw error.code === "ENOENT" ? new DatabaseDamaged(`${path} is missing`) : error;
    });
    try {
      const table = new Table(path, file, (await file.stat()).size);
      await table.#named(() => table.#readMeta());
      return table;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /**
   * Yields the changes block by block, beginning with the block that contains `from` or the first
   * key after it.
   */
  async *blocks(from: Buffer): AsyncGenerator<Entry[]> {
    const index = await this.#named(() => this.#block(this.#index));
    const outerOrder = this.#ordered();
    const order = this.#ordered();
    for (const outer of this.#named(() => this.#format.index(index))) {
      if (this.#hasTwoLevels) outerOrder(outer.handle);
      if (Buffer.compare(outer.last, from) < 0) continue;
      const listed = this.#hasTwoLevels ? await this.#named(() => this.#listed(outer.handle)) : [outer];
      for (const { last, handle } of listed) {
        order(handle);
        if (Buffer.compare(last, from) >= 0)
          yield await this.#named(async () => this.#format.entries(await this.#block(handle)));
      }
    }
  }

  /**
   * Returns a check that each block lies behind the previous one. Without it, an index that points
   * to the same blocks repeatedly would never end.
   */
  #ordered(): (handle: Handle) => void {
    let end = 0;
    return ({ offset, size }) => {
      if (!(offset >= end)) throw new DatabaseDamaged(`${this.#path} cannot be read: its blocks are not in order`);
      end = offset + size + trailerLength;
    };
  }

  async #listed(handle: Handle): Promise<IndexEntry[]> {
    return this.#format.index(await this.#block(handle));
  }

  async #readMeta(): Promise<void> {
    const { meta, isTwoLevel } = await this.#readFooter();
    const block = await this.#block(meta);
    const found = new Map<string, Handle>();
    for (const [name, value] of this.#format.meta(block)) found.set(name, new Fields(value).handle());
    const refused = names.refused.find((name) => found.has(name));
    if (refused !== undefined) throw new DatabaseDamaged(`it has ${refused}, which Kubo does not write`);
    for (const name of names.rangeDeletions) {
      const handle = found.get(name);
      if (handle !== undefined) this.tombstones.push(...this.#format.tombstones(await this.#block(handle)));
    }
    this.#hasTwoLevels = isTwoLevel ?? (await this.#saysTwoLevels(found.get(names.properties)));
  }

  async #saysTwoLevels(handle: Handle | undefined): Promise<boolean> {
    if (handle === undefined) throw new DatabaseDamaged("it has no properties");
    const type = new Map(rowPairs(await this.#block(handle))).get(names.indexType);
    return type !== undefined && type.readUInt32LE(0) === twoLevelIndex;
  }

  async #readFooter(): Promise<{ meta: Handle; isTwoLevel: boolean | undefined }> {
    const longest = Math.min(this.#size, footerLengths[newestVersion] as number);
    const end = await this.#read(this.#size - longest, longest);
    const magic = end.subarray(-magicLength);
    if (end.length < oldFooterLength || !(magic.equals(pebble) || magic.equals(rocksDb))) {
      throw new DatabaseDamaged("its footer is missing");
    }
    const version = end.readUInt32LE(end.length - magicLength - 4);
    if (version > newestVersion) throw new DatabaseDamaged(`it has the unknown version ${version}`);
    const ownVersion = magic.equals(pebble) ? version : 0;
    this.#format = blockFormat(ownVersion);
    const footer = end.subarray(-(footerLengths[ownVersion] ?? oldFooterLength));
    if (footer[0] !== crc32c) throw new DatabaseDamaged(`it has checksums of the unsupported kind ${footer[0]}`);
    const checksum = footer.length - magicLength - 8;
    if (footer.length > oldFooterLength) {
      const checked = Buffer.concat([footer.subarray(0, checksum), footer.subarray(checksum + 4)]);
      if (maskedCrc(checked) !== footer.readUInt32LE(checksum)) {
        throw new DatabaseDamaged("the checksum of its footer is wrong");
      }
    }
    const read = new Fields(footer, 1);
    const meta = read.handle();
    this.#index = read.handle();
    const hasBits = ownVersion === newestVersion;
    return { meta, isTwoLevel: hasBits ? (footer.readUInt32LE(checksum - 4) & twoLevels) !== 0 : undefined };
  }

  async #block({ offset, size }: Handle): Promise<Buffer> {
    if (size > MAX_BLOCK || offset + size + trailerLength > this.#size) {
      throw new DatabaseDamaged(`a block at ${offset} is cut off`);
    }
    const stored = await this.#read(offset, size + trailerLength);
    if (maskedCrc(stored.subarray(0, size + 1)) !== stored.readUInt32LE(size + 1)) {
      throw new DatabaseDamaged(`the checksum of the block at ${offset} is wrong`);
    }
    return expand(stored.readUInt8(size), stored.subarray(0, size));
  }

  async #read(offset: number, length: number): Promise<Buffer> {
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await this.#file.read(buffer, 0, length, offset);
    if (bytesRead < length) throw new DatabaseDamaged("it is cut off");
    return buffer;
  }

  /** Runs `read` and adds the path to the message of errors. */
  #named<T>(read: () => T): T {
    const name = (error: unknown): never => {
      // A RangeError means that an offset points outside a block.
      const isDamage = error instanceof DatabaseDamaged || error instanceof RangeError;
      throw isDamage ? new DatabaseDamaged(`${this.#path} cannot be read: ${error.message}`) : error;
    };
    try {
      const found = read();
      return (found instanceof Promise ? found.catch(name) : found) as T;
    } catch (error) {
      return name(error);
    }
  }
}
