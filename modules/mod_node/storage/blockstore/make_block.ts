/** Makes blocks from given bytes, with a CID of the caller's choice, as `block/put` does. */
import type { CID } from "multiformats/cid";
import { anyCodec, dagPb, multicodecNamed } from "../../formats/cid/codecs.ts";
import { type HashFunction, hashNamed, identity, multihash, sha256 } from "../../formats/cid/hashes.ts";
import { makeCid } from "../../formats/cid/make.ts";
import { gatherAll, readAll } from "../../util/async/read_all.ts";
import { failure } from "../../util/errors.ts";
import type { BufferPool } from "./buffer_pool.ts";
import type { Block } from "./store.ts";

/**
 * Maximum bytes of a block from a caller, which is read into memory. Peers exchange only smaller
 * ones.
 */
export const MAX_BLOCK = 128 * 1024 * 1024;

/**
 * Reads the body of a request with one block. With `buffers`, the block is read into one of them.
 * @throws NodeError when it is too long
 */
export function readBlockBody(body: AsyncIterable<Uint8Array>, buffers?: BufferPool): Promise<Uint8Array> {
  const tooLong = () =>
    failure("BLOCK_TOO_LARGE", { reason: `a block of more than ${MAX_BLOCK} bytes is not accepted` });
  return buffers === undefined ? readAll(body, MAX_BLOCK, tooLong) : gatherAll(body, buffers, MAX_BLOCK, tooLong);
}

/**
 * Refuses blocks that are longer than peers exchange.
 * @throws NodeError with the text of Kubo
 */
export function requireSize({ length }: Uint8Array, most = Number.POSITIVE_INFINITY): void {
  if (length <= most) return;
  throw failure("BLOCK_TOO_LARGE", {
    reason:
      `produced block is over ${most / MEBIBYTE}MiB: big blocks can't be exchanged with other peers. ` +
      "consider using UnixFS for automatic chunking of bigger files, or pass --allow-big-block to override",
  });
}

/**
 * Refuses CIDs that contain too many bytes.
 * @throws NodeError with the text of Kubo
 */
export function requireInline({ multihash: { code, digest } }: CID, most = Number.POSITIVE_INFINITY): void {
  if (code !== identity.code || digest.length <= most) return;
  throw failure("HASH_LENGTH_INVALID", {
    reason: `digest too large: identity digest got ${digest.length} bytes, maximum ${most}`,
  });
}

const MEBIBYTE = 1024 * 1024;

export interface BlockFormat {
  /** Undefined for CID version 0, which has one codec and one hash function. */
  readonly codec: number | undefined;
  readonly hash: HashFunction;
  /** Bytes of the digest; negative for the whole digest. */
  readonly length: number;
}

/**
 * Returns the format for the options of `block/put`. `format` is `v0`, the name of a codec, or
 * empty for version 0 when possible.
 * @throws NodeError
 */
export function blockFormat(format: string, hashName: string, length: number): BlockFormat {
  const hash = hashNamed(hashName);
  if (hash === undefined)
    throw failure("HASH_NAME_UNKNOWN", { reason: `unrecognized multihash function: ${hashName}` });
  const plain = hash === sha256 && (length === -1 || length === sha256.length);
  const name = format === "" ? (plain ? "v0" : "protobuf") : format;
  if (name === "v0") {
    if (!plain) throw failure("CID_NOT_CONVERTIBLE", { reason: "only sha2-255-32 is allowed with CIDv0" });
    return { codec: undefined, hash, length };
  }
  const codec = anyCodec(name);
  if (codec === undefined) throw failure("CODEC_UNKNOWN", { name });
  return { codec, hash, length };
}

/**
 * Returns a format for CIDs of version 1. `codec` is a name or number of the multicodec table.
 * @throws NodeError
 */
export function codecFormat(codec: string, hashName: string, length: number): BlockFormat {
  const code = multicodecNamed(codec);
  const hash = hashNamed(hashName, "multicodec");
  if (hash === undefined)
    throw failure("HASH_NAME_UNKNOWN", { reason: `unrecognized multihash function: ${hashName}` });
  return { codec: code, hash, length };
}

/**
 * Makes a block.
 * @throws NodeError when the digest cannot be made
 */
export async function makeBlock(bytes: Uint8Array, { codec, hash, length }: BlockFormat): Promise<Block> {
  const made = await multihash(hash, bytes, length);
  return { cid: codec === undefined ? makeCid(0, dagPb, made) : makeCid(1, codec, made), bytes };
}
