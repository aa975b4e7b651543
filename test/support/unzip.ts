/** Reads a ZIP archive by its central directory, as other programs do. */
import { crc32, inflateRawSync } from "node:zlib";

/**
 * Returns contents by name.
 * @throws Error for a wrong checksum, length or offset
 */
export function unzip(archive: Uint8Array): ReadonlyMap<string, Buffer> {
  const all = Buffer.from(archive);
  const end = all.length - 22;
  if (all.readUInt32LE(end) !== 0x06054b50) throw new Error("no end of the central directory");
  const found = new Map<string, Buffer>();
  let at = all.readUInt32LE(end + 16);
  for (let left = all.readUInt16LE(end + 10); left > 0; left -= 1) {
    if (all.readUInt32LE(at) !== 0x02014b50) throw new Error(`no entry of the central directory at ${at}`);
    const [sum, packed, size, named] = [16, 20, 24]
      .map((field) => all.readUInt32LE(at + field))
      .concat(all.readUInt16LE(at + 28));
    const name = all.toString("utf8", at + 46, at + 46 + (named as number));
    const start = all.readUInt32LE(at + 42);
    if (all.readUInt32LE(start) !== 0x04034b50) throw new Error(`${name} has no header at ${start}`);
    const body = start + 30 + all.readUInt16LE(start + 26);
    const content = inflateRawSync(all.subarray(body, body + (packed as number)));
    if (content.length !== size || crc32(content) !== sum) throw new Error(`${name} has another length or checksum`);
    found.set(name, content);
    at += 46 + (named as number);
  }
  if (at !== end) throw new Error("the central directory has another length");
  return found;
}
