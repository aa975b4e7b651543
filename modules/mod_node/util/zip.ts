/** Writes ZIP archives. It compresses one entry at a time in memory, and does not use ZIP64. */
import { promisify } from "node:util";
import { crc32, deflateRaw } from "node:zlib";

export interface ZipEntry {
  /** Path in the archive, with slashes between folders. */
  readonly name: string;
  readonly content: Uint8Array;
}

const SIGNATURE = { entry: 0x04034b50, listed: 0x02014b50, end: 0x06054b50 } as const;
const VERSION = 20;
/** General purpose bit 11: names are UTF-8. */
const FLAGS = 0x0800;
const DEFLATE = 8;
const ENTRY_SIZE = 30;
const LISTED_SIZE = 46;
const END_SIZE = 22;
/**
 * Length of the fields that both headers share, from the version that is needed to the length of
 * the extra field.
 */
const COMMON_SIZE = 26;

const compress = promisify(deflateRaw);

/**
 * Yields the archive in pieces. The central directory at its end lists all entries, or those before
 * an entry that fails.
 * @throws the error of `entries`, after the end of the archive
 */
export async function* zipped(
  entries: AsyncIterable<ZipEntry> | Iterable<ZipEntry>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const list: Buffer[] = [];
  let offset = 0;
  let failed: { readonly error: unknown } | undefined;
  try {
    for await (const { name, content } of entries) {
      const named = Buffer.from(name);
      const packed = await compress(content);
      const common = commonHeader(named.length, content, packed);
      const header = Buffer.alloc(ENTRY_SIZE - COMMON_SIZE);
      header.writeUInt32LE(SIGNATURE.entry);
      const entry = Buffer.concat([header, common, named, packed]);
      list.push(listed(common, named, offset));
      offset += entry.length;
      yield entry;
    }
  } catch (error) {
    failed = { error };
  }
  yield Buffer.concat([...list, end(list, offset)]);
  if (failed !== undefined) throw failed.error;
}

function commonHeader(nameLength: number, content: Uint8Array, packed: Uint8Array): Buffer {
  const common = Buffer.alloc(COMMON_SIZE);
  common.writeUInt16LE(VERSION, 0);
  common.writeUInt16LE(FLAGS, 2);
  common.writeUInt16LE(DEFLATE, 4);
  const { time, date } = dosTime(new Date());
  common.writeUInt16LE(time, 6);
  common.writeUInt16LE(date, 8);
  common.writeUInt32LE(crc32(content), 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(content.length, 18);
  common.writeUInt16LE(nameLength, 22);
  return common;
}

function listed(common: Buffer, name: Buffer, offset: number): Buffer {
  const header = Buffer.alloc(LISTED_SIZE);
  header.writeUInt32LE(SIGNATURE.listed, 0);
  header.writeUInt16LE(VERSION, 4);
  common.copy(header, 6);
  header.writeUInt32LE(offset, 42);
  return Buffer.concat([header, name]);
}

function end(list: readonly Buffer[], offset: number): Buffer {
  const record = Buffer.alloc(END_SIZE);
  record.writeUInt32LE(SIGNATURE.end, 0);
  record.writeUInt16LE(list.length, 8);
  record.writeUInt16LE(list.length, 10);
  record.writeUInt32LE(
    list.reduce((sum, { length }) => sum + length, 0),
    12,
  );
  record.writeUInt32LE(offset, 16);
  return record;
}

/** Local time with a resolution of two seconds, as in DOS. */
const dosTime = (now: Date) => ({
  time: (now.getHours() << 11) | (now.getMinutes() << 5) | (now.getSeconds() >> 1),
  date: ((now.getFullYear() - 1980) << 9) | ((now.getMonth() + 1) << 5) | now.getDate(),
});
