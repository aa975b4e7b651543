/**
 * The hash functions of the reference (go-multihash 0.0.15, and what came until Kubo 0.43): names,
 * codes, which of them may be used, and how they are computed.
 */
import { createHash, hash as hashOnce } from "node:crypto";
import type { IHasher } from "hash-wasm";
import type { CID, MultihashDigest } from "multiformats/cid";
import { create as createDigest } from "multiformats/hashes/digest";
import { failure, type NodeError } from "../../util/errors.ts";
import type { Names } from "./codecs.ts";

/**
 * Computes a digest: at once, but for long inputs, which are hashed on another thread. That takes a
 * copy of the input, which costs as much as its hash does.
 */
export type Digest = (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;

export interface HashFunction {
  readonly name: string;
  readonly code: number;
  /** Bytes of a full digest. */
  readonly length: number;
  /** Whether blocks with this hash function may be stored and read. */
  readonly allowed: boolean;
  /** Undefined when it cannot be computed, here as in the reference. */
  readonly digest: Digest | undefined;
  /**
   * Whether it came after go-ipfs 0.9: blocks with it are stored and read, but it is not among the
   * names of that version.
   */
  readonly later: boolean;
}

/** Longer inputs would hold the event loop. */
const MAX_INLINE_BYTES = 1024 * 1024;

const subtle = (algorithm: string) => async (bytes: Uint8Array) =>
  new Uint8Array(await crypto.subtle.digest(algorithm, bytes as Uint8Array<ArrayBuffer>));

const once = (algorithm: string) => (bytes: Uint8Array) => hashOnce(algorithm, bytes, "buffer");

function openssl(algorithm: string, web?: string): Digest {
  const here = once(algorithm);
  if (web === undefined) return here;
  const there = subtle(web);
  return (bytes) => (bytes.length <= MAX_INLINE_BYTES ? here(bytes) : there(bytes));
}

/** A WebAssembly hasher is loaded on first use and kept; later digests are synchronous. */
function wasm(make: (library: typeof import("hash-wasm")) => Promise<IHasher>): Digest {
  let loading: Promise<IHasher> | undefined;
  let hasher: IHasher | undefined;
  const load = async () => {
    loading ??= import("hash-wasm").then(make);
    hasher = await loading;
    return hasher;
  };
  const digestBy = (loaded: IHasher, bytes: Uint8Array) => loaded.init().update(bytes).digest("binary");
  return (bytes) => (hasher === undefined ? load().then((loaded) => digestBy(loaded, bytes)) : digestBy(hasher, bytes));
}

const doubleSha256: Digest = (bytes) => hashOnce("sha256", hashOnce("sha256", bytes, "buffer"), "buffer");
const shake =
  (algorithm: string, outputLength: number): Digest =>
  (bytes) =>
    createHash(algorithm, { outputLength }).update(bytes).digest();

type Row = readonly [name: string, code: number, length: number, allowed: boolean, digest?: Digest];

const rows: readonly Row[] = [
  ["identity", 0x00, 0, true, (bytes) => bytes],
  ["sha1", 0x11, 20, true, openssl("sha1", "SHA-1")],
  ["sha2-256", 0x12, 32, true, openssl("sha256", "SHA-256")],
  ["sha2-512", 0x13, 64, true, openssl("sha512", "SHA-512")],
  ["sha3-512", 0x14, 64, true, openssl("sha3-512")],
  ["sha3-384", 0x15, 48, true, openssl("sha3-384")],
  ["sha3-256", 0x16, 32, true, openssl("sha3-256")],
  ["sha3-224", 0x17, 28, true, openssl("sha3-224")],
  ["shake-128", 0x18, 32, false, shake("shake128", 32)],
  ["shake-256", 0x19, 64, true, shake("shake256", 64)],
  ["keccak-224", 0x1a, 28, true],
  ["keccak-256", 0x1b, 32, true, wasm(({ createKeccak }) => createKeccak(256))],
  ["keccak-384", 0x1c, 48, true],
  ["keccak-512", 0x1d, 64, true, wasm(({ createKeccak }) => createKeccak(512))],
  ["blake3", 0x1e, 32, true, wasm(({ createBLAKE3 }) => createBLAKE3())],
  ["murmur3-128", 0x22, 4, false],
  ["dbl-sha2-256", 0x56, 32, true, doubleSha256],
  ["md5", 0xd5, 16, false, once("md5")],
  ["sha2-256-trunc254-padded", 0x1012, 32, false],
  ["x11", 0x1100, 64, false],
  ...steps("blake2b", 0xb200, 64, (bytes) => wasm(({ createBLAKE2b }) => createBLAKE2b(bytes * 8))),
  ...steps("blake2s", 0xb240, 32, (bytes) => (bytes === 32 ? openssl("blake2s256") : undefined)),
];

/**
 * A family with one member for each digest length in bytes; members under 160 bits are not allowed.
 */
function steps(name: string, base: number, longest: number, digest: (bytes: number) => Digest | undefined): Row[] {
  return Array.from({ length: longest }, (_, at): Row => {
    const bytes = at + 1;
    const made = digest(bytes);
    const row = [`${name}-${bytes * 8}`, base + bytes, bytes, bytes >= 20] as const;
    return made === undefined ? row : [...row, made];
  });
}

const hashFunctions: readonly HashFunction[] = rows.map(([name, code, length, allowed, digest]) => ({
  name,
  code,
  length,
  allowed,
  digest,
  later: name === "blake3",
}));

const byCode = new Map(hashFunctions.map((entry) => [entry.code, entry]));
const byName = new Map(hashFunctions.map((entry) => [entry.name, entry]));
byName.set("sha3", byCode.get(0x14) as HashFunction);

/** Those that may be used. */
export const hashesBy = (names: Names): readonly HashFunction[] =>
  hashFunctions.filter(({ allowed, later }) => allowed && isNamedBy(later, names));

const isNamedBy = (later: boolean, names: Names): boolean => !later || names !== undefined;

/** Undefined for an unknown name; case-sensitive. */
export function hashNamed(name: string, names?: Names): HashFunction | undefined {
  const found = byName.get(name);
  return found !== undefined && isNamedBy(found.later, names) ? found : undefined;
}

export const hashCoded = (code: number): HashFunction | undefined => byCode.get(code);

/** Its digests are the bytes themselves. */
export const identity = byCode.get(0x00) as HashFunction;
export const sha256 = byCode.get(0x12) as HashFunction;

/** For a hash function that is unknown or cannot be computed. */
export const hashUnavailable = (code: number): NodeError =>
  failure("HASH_UNAVAILABLE", { code, hex: code.toString(16) });

/** Loads what `digestHere` needs for a hash function. Resolves to whether it can be used then. */
export async function loadDigest(code: number): Promise<boolean> {
  const { digest } = byCode.get(code) ?? {};
  await digest?.(new Uint8Array());
  return digest?.(new Uint8Array()) instanceof Uint8Array;
}

/**
 * The digest of a short text or the like. @throws NodeError for a hash function that only others
 * compute at once
 */
export function digestHere(code: number, bytes: Uint8Array): Uint8Array {
  const made = byCode.get(code)?.digest?.(bytes);
  if (made instanceof Uint8Array) return made;
  throw hashUnavailable(code);
}

const MIN_DIGEST = 20;

/**
 * @throws NodeError with the reference's text, for hash functions and digests that are neither
 * stored nor read
 */
export function requireAllowed({ code, digest }: MultihashDigest): void {
  if (!byCode.get(code)?.allowed) throw failure("HASH_INSECURE");
  if (code === identity.code || digest.length >= MIN_DIGEST) return;
  throw failure("HASH_SHORT", { hash: byCode.get(code)?.name ?? "", length: digest.length, least: MIN_DIGEST });
}

/**
 * The multihash of bytes, its digest cut to `length` (-1: not cut).
 *
 * @throws NodeError when it cannot be computed, or the digest is shorter than `length`
 */
export async function multihash(entry: HashFunction, bytes: Uint8Array, length = -1): Promise<MultihashDigest> {
  const made = entry.digest?.(bytes);
  if (made === undefined) throw hashUnavailable(entry.code);
  const digest = made instanceof Promise ? await made : made;
  // The reference never cuts the bytes themselves.
  if (entry === identity) return createDigest(entry.code, digest);
  if (length > digest.length)
    throw failure("HASH_LENGTH_INVALID", { reason: "requested length was too large for digest" });
  return createDigest(entry.code, length < 0 ? digest : digest.subarray(0, length));
}

/** Whether bytes fit a CID. False as well for an unknown hash function. */
export async function matches(cid: CID, bytes: Uint8Array): Promise<boolean> {
  return isDigest(await byCode.get(cid.multihash.code)?.digest?.(bytes), cid);
}

/** As `matches`, at once where the digest is. */
export function matchesHere(cid: CID, bytes: Uint8Array): boolean | Promise<boolean> {
  const made = byCode.get(cid.multihash.code)?.digest?.(bytes);
  return made instanceof Promise ? made.then((digest) => isDigest(digest, cid)) : isDigest(made, cid);
}

function isDigest(made: Uint8Array | undefined, { multihash: { digest } }: CID): boolean {
  if (made === undefined || made.length < digest.length) return false;
  return Buffer.compare(made.length === digest.length ? made : made.subarray(0, digest.length), digest) === 0;
}
