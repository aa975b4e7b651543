/** Keys of blocks in bitswap: the multihash as text, so that all forms of a CID share a key. */

import { CID } from "multiformats/cid";
import { hashCoded, identity } from "../../formats/cid/hashes.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { failure } from "../../util/errors.ts";
import { ownBytes } from "../../util/own_bytes.ts";
import type { WireBlock } from "./message.ts";

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");

export const keyOf = ({ multihash }: CID): string => textOf(multihash.bytes);

/**
 * Like `keyOf`, from the bytes of a CID, which are not validated further. @throws Error if there
 * are too many bytes
 */
export function keyOfCid(cid: Uint8Array): string {
  requireLength(cid);
  if (cid[0] === VERSION_0_PREFIX[2] && cid[1] === VERSION_0_PREFIX[3]) return textOf(cid);
  const codec = cid.findIndex((byte) => byte < 0x80) + 1;
  return textOf(cid.subarray(codec + cid.subarray(codec).findIndex((byte) => byte < 0x80) + 1));
}

/** Version 0, dag-pb, sha2-256, 32 bytes. */
const VERSION_0_PREFIX = Uint8Array.of(0, 0x70, 0x12, 0x20);

/**
 * Returns the prefix that is sent with a block: version, codec, hash function and digest length of
 * its CID.
 */
export function cidPrefix({ version, bytes, multihash }: CID): Uint8Array {
  return version === 0 ? VERSION_0_PREFIX : bytes.subarray(0, bytes.length - multihash.digest.length);
}

interface HashForm {
  /** Multicodec of the hash function. */
  readonly code: number;
  /** Length of the digest in bytes. */
  readonly length: number;
}

/** The hash of a block without a prefix, whose CID has version 0. */
const VERSION_0_HASH: HashForm = { code: 0x12, length: 32 };

/** Returns undefined for an invalid prefix. */
function hashFormOf(prefix: Uint8Array | undefined): HashForm | undefined {
  if (prefix === undefined) return VERSION_0_HASH;
  const numbers: number[] = [];
  let value = 0;
  let scale = 1;
  for (const byte of prefix) {
    value += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte >= 0x80) continue;
    numbers.push(value);
    value = 0;
    scale = 1;
  }
  const [, , code, length] = numbers;
  return numbers.length === 4 && code !== undefined && length !== undefined ? { code, length } : undefined;
}

/**
 * Computes the key of a received block, without a promise for most hash functions. Returns
 * undefined if the hash function is unknown or not allowed.
 */
export function keyOfWireBlock({ prefix, data }: WireBlock): string | undefined | Promise<string | undefined> {
  const form = hashFormOf(prefix);
  const hash = form && hashCoded(form.code);
  if (form === undefined || !hash?.allowed || hash.code === identity.code) return undefined;
  const digest = hash.digest?.(data);
  return digest instanceof Promise ? digest.then((made) => keyFor(form, made)) : digest && keyFor(form, digest);
}

function keyFor({ code, length }: HashForm, digest: Uint8Array): string | undefined {
  if (length > digest.length) return undefined;
  const head = new Uint8Array(varintLength(code) + varintLength(length));
  writeVarint(head, writeVarint(head, 0, code), length);
  return textOf(head) + textOf(digest.subarray(0, length));
}

/**
 * Returns the CID of a received block, from its prefix and key; undefined for an invalid prefix.
 */
export function cidOfWireBlock({ prefix }: WireBlock, key: string): CID | undefined {
  const multihash = Buffer.from(key, "latin1");
  try {
    return prefix === undefined || prefix[0] === 0
      ? CID.decode(multihash)
      : CID.decode(Buffer.concat([prefix.subarray(0, prefix.length - headLength(multihash)), multihash]));
  } catch {
    return undefined;
  }
}

/** Returns the number of bytes before the digest: hash function and digest length. */
function headLength(multihash: Uint8Array): number {
  const code = multihash.findIndex((byte) => byte < 0x80);
  return code + 1 + multihash.subarray(code + 1).findIndex((byte) => byte < 0x80) + 1;
}

/**
 * Maximum size of a CID that a peer may send. Only CIDs with an identity hash are longer, and these
 * never need fetching.
 */
const MAX_CID_SIZE = 512;

function requireLength(cid: Uint8Array): void {
  if (cid.length > MAX_CID_SIZE) throw failure("MESSAGE_INVALID", { reason: "a CID that is too long" });
}

/**
 * Decodes a CID from a copy of the bytes, so that it does not retain the memory of the message.
 * @throws Error for an invalid CID
 */
export function copyCid(bytes: Uint8Array): CID {
  requireLength(bytes);
  return CID.decode(ownBytes(bytes));
}
