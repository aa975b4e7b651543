/**
 * Generates content of any size that is the same in every run and in every language: an AES-128-CTR
 * key stream.
 */
import { createCipheriv, createHash } from "node:crypto";

const pieceLength = 64 * 1024;

/**
 * Yields `size` bytes. Each seed gives different bytes: the key is the seed as 16 big-endian bytes,
 * and the counter begins at 0.
 */
export function* keystream(size: number, seed: number): Generator<Buffer, void, undefined> {
  const key = Buffer.alloc(16);
  key.writeUInt32BE(seed, 12);
  const cipher = createCipheriv("aes-128-ctr", key, Buffer.alloc(16));
  const zeros = Buffer.alloc(pieceLength);
  for (let left = size; left > 0; left -= pieceLength)
    yield cipher.update(zeros.subarray(0, Math.min(left, pieceLength)));
}

export function digestOf(pieces: Iterable<Uint8Array>): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}
