/**
 * Returns the blocks of a CARv1 archive with any codec and hash function. Hashes are not verified.
 */
import { CID } from "multiformats/cid";

export function blocksIn(archive: Uint8Array): { readonly cid: CID; readonly bytes: Uint8Array }[] {
  const blocks = [];
  let [size, at] = varint(archive, 0);
  for (at += size; at < archive.length; at += size) {
    [size, at] = varint(archive, at);
    const [cid, bytes] = CID.decodeFirst(archive.subarray(at, at + size));
    blocks.push({ cid, bytes: Uint8Array.from(bytes) });
  }
  return blocks;
}

function varint(bytes: Uint8Array, from: number): [value: number, next: number] {
  let value = 0;
  for (let at = from, scale = 1; ; at += 1, scale *= 128) {
    const byte = bytes[at] as number;
    value += (byte & 127) * scale;
    if (byte < 128) return [value, at + 1];
  }
}
