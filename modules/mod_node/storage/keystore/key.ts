/**
 * Private keys in the format of key files: the message `PrivateKey` of the "libp2p peer ids and
 * keys" specification.
 */
import { createECDH, createPrivateKey, createPublicKey, hash, type KeyObject } from "node:crypto";
import { generateKeyPair, privateKeyToProtobuf } from "@libp2p/crypto/keys";
import { peerIdFromMultihash } from "@libp2p/peer-id";
import { create as createDigest } from "multiformats/hashes/digest";
import { identity, sha256 } from "../../formats/cid/hashes.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import { FieldReader, tagOf, wireBytes, wireVarint } from "../../formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { failure } from "../../util/errors.ts";
import type { IdentityConfig } from "../repo/identity.ts";

export interface Key {
  /** Content of the key file: the protobuf of the private key. */
  readonly bytes: Uint8Array;
  /** The peer id of the key, which is also the IPNS name that it signs. */
  readonly id: PeerId;
  /** Protobuf of the public key. */
  readonly publicKey: Uint8Array;
}

/** How a key is generated. `size` is in bits and applies to RSA only. */
export interface KeyOptions {
  /** `ed25519`, `rsa` or `secp256k1`, in any letter case. */
  readonly type: string;
  readonly size?: number | undefined;
  /** Whether to refuse a `size` that differs from the fixed size of the type; false by default. */
  readonly exact?: boolean | undefined;
}

/** Field numbers of `PrivateKey` and `PublicKey`. */
export const KEY_FIELDS = { type: 1, data: 2 } as const;
/** Numbers of the enum `KeyType`. */
export const KEY_TYPES = { rsa: 0, ed25519: 1, secp256k1: 2, ecdsa: 3 } as const;

const MIN_RSA_BITS = 2048;
/** Other implementations refuse longer keys, and generating them takes minutes. */
const MAX_RSA_BITS = 8192;

/** Bits of every key of a type other than RSA. */
const FIXED_BITS = 256;

/** Bits of an RSA key when no size is given. */
export const DEFAULT_RSA_BITS = 2048;

/**
 * Generates a key.
 * @throws NodeError for an unknown type or a size that cannot be used
 */
export async function generateKey({ type, size, exact = false }: KeyOptions): Promise<Key> {
  const name = type.toLowerCase();
  if (name === "rsa") {
    const bits = size ?? DEFAULT_RSA_BITS;
    requireBits(bits);
    return decodeKey(privateKeyToProtobuf(await generateKeyPair("RSA", bits)));
  }
  const fixed = name === "ed25519" ? "Ed25519" : name === "secp256k1" ? "secp256k1" : undefined;
  if (fixed === undefined) throw failure("OPTION_INVALID", { reason: `unrecognized key type: ${type}` });
  if (exact && size !== undefined && size !== FIXED_BITS) {
    throw failure("OPTION_INVALID", { reason: `invalid key size ${size}: ${name} keys are always ${FIXED_BITS} bits` });
  }
  return decodeKey(privateKeyToProtobuf(await generateKeyPair(fixed)));
}

function requireBits(bits: number): void {
  const least = process.env.LIBP2P_ALLOW_WEAK_RSA_KEYS === undefined ? MIN_RSA_BITS : 512;
  if (bits < least) throw failure("OPTION_INVALID", { reason: `rsa keys must be >= ${least} bits to be useful` });
  if (bits > MAX_RSA_BITS)
    throw failure("OPTION_INVALID", { reason: `rsa keys must be <= ${MAX_RSA_BITS} bits to be of use to others` });
}

/**
 * Decodes a private key.
 * @throws NodeError when the bytes are not a private key
 */
export function decodeKey(bytes: Uint8Array): Key {
  const { type, data } = keyParts(bytes);
  const kind = kinds[type];
  if (kind === undefined) throw failure("KEY_INVALID", { reason: "invalid or unsupported key type" });
  const { secret = data, open } = kind(data);
  const publicKey = protobuf(type, open);
  return { bytes: protobuf(type, secret), id: peerIdOf(publicKey), publicKey };
}

/** Returns the section `Identity` of a configuration whose node has this key. */
export const identityOf = ({ bytes, id }: Key): IdentityConfig => ({
  PeerID: id.toString(),
  PrivKey: Buffer.from(bytes).toString("base64"),
});

/**
 * Returns the number of the type and the data of a key in the format of libp2p.
 * @throws NodeError when one of them is missing
 */
export function keyParts(bytes: Uint8Array): { readonly type: number; readonly data: Uint8Array } {
  const reader = new FieldReader(bytes);
  let type: number | undefined;
  let data: Uint8Array | undefined;
  while (reader.next()) {
    if (reader.field === KEY_FIELDS.type) type = reader.number;
    else if (reader.field === KEY_FIELDS.data) data = reader.bytes;
  }
  if (type === undefined) throw failure("KEY_INVALID", { reason: 'proto: required field "Type" not set' });
  if (data === undefined) throw failure("KEY_INVALID", { reason: 'proto: required field "Data" not set' });
  return { type, data };
}

/** Encodes a private or public key in the format of libp2p. */
export const keyProtobuf = (type: number, data: Uint8Array): Uint8Array => protobuf(type, data);

function protobuf(type: number, data: Uint8Array): Uint8Array {
  const head = 3 + varintLength(data.length);
  const bytes = new Uint8Array(head + data.length);
  bytes.set([tagOf(KEY_FIELDS.type, wireVarint), type, tagOf(KEY_FIELDS.data, wireBytes)]);
  bytes.set(data, writeVarint(bytes, 3, data.length));
  return bytes;
}

/** Maximum bytes of a public key that a peer id contains itself, as an identity multihash. */
const MAX_INLINE_KEY = 42;

/**
 * Returns the peer id of a public key.
 * @param publicKey its protobuf
 */
export function peerIdOf(publicKey: Uint8Array): PeerId {
  if (publicKey.length <= MAX_INLINE_KEY) return peerIdFromMultihash(createDigest(identity.code, publicKey));
  return peerIdFromMultihash(createDigest(sha256.code, hash("sha256", publicKey, "buffer")));
}

// key types

interface Parts {
  /** The canonical form of the private data, when it differs from the bytes that were read. */
  readonly secret?: Uint8Array;
  /** The data of the public key. */
  readonly open: Uint8Array;
}

const kinds: Readonly<Record<number, (data: Uint8Array) => Parts>> = {
  [KEY_TYPES.rsa]: rsa,
  [KEY_TYPES.ed25519]: ed25519,
  [KEY_TYPES.secp256k1]: secp256k1,
  [KEY_TYPES.ecdsa]: ecdsa,
};

function ed25519(data: Uint8Array): Parts {
  const seed = data.subarray(0, 32);
  const publicKey = data.subarray(32, 64);
  const repeated = data.subarray(64);
  if (data.length !== 64 && data.length !== 96) {
    throw failure("KEY_INVALID", { reason: `expected ed25519 data size to be 64 or 96, got ${data.length}` });
  }
  if (repeated.length > 0 && Buffer.compare(publicKey, repeated) !== 0) {
    throw failure("KEY_INVALID", { reason: "expected redundant ed25519 public key to be redundant" });
  }
  return { secret: Buffer.concat([seed, publicKey]), open: publicKey };
}

function secp256k1(data: Uint8Array): Parts {
  if (data.length !== 32) throw failure("KEY_INVALID", { reason: "expected secp256k1 data size to be 32" });
  const pair = createECDH("secp256k1");
  try {
    pair.setPrivateKey(data);
  } catch (error) {
    throw failure(
      "KEY_INVALID",
      { reason: "the secp256k1 key is invalid: its value is not between 1 and the order of the curve" },
      error,
    );
  }
  return { open: pair.getPublicKey(undefined, "compressed") };
}

function rsa(data: Uint8Array): Parts {
  const key = read(data, "pkcs1", "the RSA key cannot be read");
  requireBits(key.asymmetricKeyDetails?.modulusLength ?? 0);
  return { open: publicPart(key) };
}

const curves: readonly (string | undefined)[] = ["prime256v1", "secp384r1", "secp521r1"];

function ecdsa(data: Uint8Array): Parts {
  const key = read(data, "sec1", "x509: failed to parse EC private key");
  if (!curves.includes(key.asymmetricKeyDetails?.namedCurve))
    throw failure("KEY_INVALID", { reason: "x509: unknown elliptic curve" });
  return { open: publicPart(key) };
}

function read(data: Uint8Array, type: "pkcs1" | "sec1", words: string): KeyObject {
  try {
    return createPrivateKey({ key: Buffer.from(data), format: "der", type });
  } catch (error) {
    throw failure("KEY_INVALID", { reason: `${words}: ${(error as Error).message}` }, error);
  }
}

const publicPart = (key: KeyObject): Uint8Array => createPublicKey(key).export({ type: "spki", format: "der" });
