/**
 * Parses and prints CIDs ("CID specification"), with the error texts of go-cid 0.0.7.
 */
import { varint } from "multiformats";
import { CID } from "multiformats/cid";
import { Digest } from "multiformats/hashes/digest";
import { failure, NodeError } from "../../util/errors.ts";
import { dagPb } from "./codecs.ts";
import { type Base, base32, base58btc, multibaseOfPrefix } from "./multibase.ts";
import { decodeMultibase } from "./multibase_decode.ts";

const sha256Code = 0x12;
const sha256Length = 32;
const MAX_DIGEST = 128;

/** @throws NodeError INVALID_CID whose message is only the reason */
export function parseCid(text: string): CID {
  return parseCidWithBase(text).cid;
}

export interface CidWithBase {
  readonly cid: CID;
  readonly base: Base;
}

/** Returns the CID and the base of the text. @throws NodeError as `parseCid` does */
export function parseCidWithBase(text: string): CidWithBase {
  const { bytes, base } = inTurn("invalid cid", () => read(text));
  return { cid: inTurn("invalid cid: invalid cid", () => castCid(bytes)), base };
}

/**
 * Runs `work` and turns its errors into INVALID_CID. `later` is the prefix that later versions of
 * go-cid write before the reason; they write it once more for errors in the decoded bytes.
 */
function inTurn<T>(later: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw failure("INVALID_CID", { reason: error.message, later: `${later}: ${error.message}` }, error);
  }
}

function read(text: string): { readonly bytes: Uint8Array; readonly base: Base } {
  if (text.length < 2) throw failure("INVALID_CID", { reason: "cid too short" });
  if (text.length === 46 && text.startsWith("Qm")) return { bytes: multihashOf(text), base: base58btc };
  const base = multibaseOfPrefix(text.charAt(0));
  if (base === undefined) throw failure("INVALID_CID", { reason: "selected encoding not supported" });
  return { bytes: decodeMultibase(base, text), base };
}

/** Returns the multihash of a CID of version 0. */
function multihashOf(text: string): Uint8Array {
  try {
    return base58btc.decoder.decode(`z${text}`);
  } catch {
    throw failure("INVALID_CID", { reason: "input isn't valid multihash" });
  }
}

/** Decodes a CID that takes up all of the bytes. */
export function castCid(bytes: Uint8Array): CID {
  const at = bytes.length - sha256Length - 2;
  // Nearly all CIDs use SHA-256 and have version 0, or version 1 with a one-byte codec. This fast
  // path reads them without parsing varints.
  if ((at === 0 || (at === 2 && isShortHead(bytes))) && bytes[at] === sha256Code && bytes[at + 1] === sha256Length) {
    const digest = new Digest(sha256Code, sha256Length, bytes.subarray(at + 2), at === 0 ? bytes : bytes.subarray(at));
    return at === 0 ? new CID(0, dagPb, digest, bytes) : new CID(1, bytes[1] as number, digest, bytes);
  }
  return castAny(bytes);
}

const isShortHead = (bytes: Uint8Array): boolean => bytes[0] === 1 && (bytes[1] as number) < 0x80;

function castAny(bytes: Uint8Array): CID {
  const [version, codec, from] = head(bytes);
  const [code, length, at] = multihashHead(bytes, from);
  const end = at + length;
  if (end > bytes.length)
    throw failure("CID_BYTES_INVALID", { reason: "length greater than remaining number of bytes in buffer" });
  if (end < bytes.length)
    throw failure("CID_BYTES_INVALID", { reason: "trailing bytes in data buffer passed to cid Cast" });
  const digest = new Digest(code, length, bytes.subarray(at), from === 0 ? bytes : bytes.subarray(from));
  // A one-byte varint has only one encoding, so these bytes are the canonical bytes of the CID.
  const same = version === 0 ? at === 2 : at === 4;
  return same ? new CID(version, codec, digest, bytes) : CID.create(version, codec, digest);
}

function head(bytes: Uint8Array): readonly [version: 0 | 1, codec: number, from: number] {
  if (bytes.length > 2 && bytes[0] === sha256Code && bytes[1] === sha256Length) return [0, dagPb, 0];
  const [version, codecAt] = number(bytes, 0);
  if (version !== 1)
    throw failure("CID_BYTES_INVALID", { reason: `expected 1 as the cid version number, got: ${version}` });
  const [codec, from] = number(bytes, codecAt);
  return [1, codec, from];
}

function multihashHead(bytes: Uint8Array, from: number): readonly [code: number, length: number, at: number] {
  if (bytes.length - from < 2)
    throw failure("CID_BYTES_INVALID", { reason: "multihash too short. must be >= 2 bytes" });
  const [code, lengthAt] = number(bytes, from);
  const [length, at] = number(bytes, lengthAt);
  if (length > MAX_DIGEST && code !== 0)
    throw failure("CID_BYTES_INVALID", { reason: "digest too long, supporting only <= 2^31-1" });
  return [code, length, at];
}

function number(bytes: Uint8Array, at: number): readonly [value: number, next: number] {
  const first = bytes[at];
  if (first !== undefined && first < 0x80) return [first, at + 1];
  try {
    const [value, read] = varint.decode(bytes, at);
    return [value, at + read];
  } catch {
    throw failure("CID_BYTES_INVALID", { reason: "varints malformed, could not reach the end" });
  }
}

/**
 * Version 0 is always written in base58btc without prefix, version 1 in `base`. Calls the encoder
 * directly, because `CID.toString` caches each text, which costs more than encoding.
 */
export function cidText({ version, bytes }: CID, base: Base = base32): string {
  return version === 0 ? base58btc.baseEncode(bytes) : base.encoder.encode(bytes);
}
