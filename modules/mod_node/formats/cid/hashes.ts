/**
 * The hash functions of go-multihash 0.0.15 and those that Kubo added until 0.43: names, codes,
 * which of them may be used, and how to compute them.
 */
import { createHash, hash as hashOnce } from "node:crypto";
import type { IHasher } from "hash-wasm";
import type { CID, MultihashDigest } from "multiformats/cid";
import { create as createDigest } from "multiformats/hashes/digest";
import { failure, type NodeError } from "../../util/errors.ts";
import type { Names } from "./codecs.ts";

/**
 * Computes a digest. Short inputs are hashed at once. Long inputs are hashed on another thread,
 * which requires a copy of the input; that costs as much as hashing.
 */
export type Digest = (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;

export interface HashFunction {
  readonly name: string;
  readonly code: number;
  /** Length of a full digest in bytes. */
  readonly length: number;
  /** Whether blocks with this hash function may be stored and read. */
  readonly allowed: boolean;
  /** Undefined if neither this implementation nor go-multihash can compute it. */
  readonly digest: Digest | undefined;
  /**
   * Whether it was added after go-ipfs 0.9. Blocks with it are stored and read, but that version
   * does not list its name.
   */
  readonly later: boolean;
}

/** Longer inputs would block the event loop. */
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

/**
 * Loads a WebAssembly hasher on first use and keeps it. The first digest is a promise, later ones
 * are synchronous.
 */
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
 * Returns a family of hash functions, one for each digest length in bytes. Functions with a digest
 * under 160 bits are not allowed.
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

/** Lists the hash functions that may be used. */
export const hashesBy = (names: Names): readonly HashFunction[] =>
  hashFunctions.filter(({ allowed, later }) => allowed && isNamedBy(later, names));

const isNamedBy = (later: boolean, names: Names): boolean => !later || names !== undefined;

/** Returns undefined for an unknown name. Names are case-sensitive. */
export function hashNamed(name: string, names?: Names): HashFunction | undefined {
  const found = byName.get(name);
  return found !== undefined && isNamedBy(found.later, names) ? found : undefined;
}

export const hashCoded = (code: number): HashFunction | undefined => byCode.get(code);

/** The digest of the identity function is the input itself. */
export const identity = byCode.get(0x00) as HashFunction;
export const sha256 = byCode.get(0x12) as HashFunction;

/** The error for a hash function that is unknown or cannot be computed. */
export const hashUnavailable = (code: number): NodeError =>
  failure("HASH_UNAVAILABLE", { code, hex: code.toString(16) });

/**
 * Prepares a hash function for `digestHere`. Resolves to whether `digestHere` can compute it then.
 */
export async function loadDigest(code: number): Promise<boolean> {
  const { digest } = byCode.get(code) ?? {};
  await digest?.(new Uint8Array());
  return digest?.(new Uint8Array()) instanceof Uint8Array;
}

/**
 * Computes the digest of a short input synchronously.
 *
 * @throws NodeError for a hash function that is not loaded or cannot be computed
 */
export function digestHere(code: number, bytes: Uint8Array): Uint8Array {
  const made = byCode.get(code)?.digest?.(bytes);
  if (made instanceof Uint8Array) return made;
  throw hashUnavailable(code);
}

const MIN_DIGEST = 20;

/**
 * @throws NodeError with the error text of go-ipfs, for hash functions and digests that may be
 * neither stored nor read
 */
export function requireAllowed({ code, digest }: MultihashDigest): void {
  if (!byCode.get(code)?.allowed) throw failure("HASH_INSECURE");
  if (code === identity.code || digest.length >= MIN_DIGEST) return;
  throw failure("HASH_SHORT", { hash: byCode.get(code)?.name ?? "", length: digest.length, least: MIN_DIGEST });
}

/**
 * Computes the multihash of bytes, with the digest cut to `length` (-1: not cut).
 *
 * @throws NodeError if it cannot be computed, or if the digest is shorter than `length`
 */
export async function multihash(entry: HashFunction, bytes: Uint8Array, length = -1): Promise<MultihashDigest> {
  const made = entry.digest?.(bytes);
  if (made === undefined) throw hashUnavailable(entry.code);
  const digest = made instanceof Promise ? await made : made;
  // go-multihash never cuts an identity digest.
  if (entry === identity) return createDigest(entry.code, digest);
  if (length > digest.length)
    throw failure("HASH_LENGTH_INVALID", { reason: "requested length was too large for digest" });
  return createDigest(entry.code, length < 0 ? digest : digest.subarray(0, length));
}

/** Whether bytes match the digest of a CID. False for an unknown hash function, too. */
export async function matches(cid: CID, bytes: Uint8Array): Promise<boolean> {
  return isDigest(await byCode.get(cid.multihash.code)?.digest?.(bytes), cid);
}

/** Same as `matches`, but without a promise if the digest is computed synchronously. */
export function matchesHere(cid: CID, bytes: Uint8Array): boolean | Promise<boolean> {
  const made = byCode.get(cid.multihash.code)?.digest?.(bytes);
  return made instanceof Promise ? made.then((digest) => isDigest(digest, cid)) : isDigest(made, cid);
}

function isDigest(made: Uint8Array | undefined, { multihash: { digest } }: CID): boolean {
  if (made === undefined || made.length < digest.length) return false;
  return Buffer.compare(made.length === digest.length ? made : made.subarray(0, digest.length), digest) === 0;
}
