/** Private keys as files hold them: libp2p's protobuf (network section 2, "Keys"). */
import { createECDH, createPrivateKey, createPublicKey, hash, type KeyObject } from "node:crypto";
import { generateKeyPair, privateKeyToProtobuf } from "@libp2p/crypto/keys";
import { peerIdFromMultihash } from "@libp2p/peer-id";
import { create as createDigest } from "multiformats/hashes/digest";
import { identity, sha256 } from "../../formats/cid/hashes.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import { FieldReader } from "../../formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { NodeError } from "../../util/errors.ts";
import type { IdentityConfig } from "../repo/identity.ts";

export interface Key {
  /** What stands in the file: the protobuf of the private key. */
  readonly bytes: Uint8Array;
  /** The name that it signs. */
  readonly id: PeerId;
  /** Protobuf of the public key. */
  readonly publicKey: Uint8Array;
}

/** What a key is made from; `size` in bits, for RSA alone. */
export interface KeyOptions {
  /** `ed25519` or `rsa`, in any letter case. */
  readonly type: string;
  readonly size?: number | undefined;
}

const MIN_RSA_BITS = 2048;
/** Others refuse longer ones, and making them takes minutes. */
const MAX_RSA_BITS = 8192;

/** Bits of an RSA key where nobody says. */
export const defaultBits = 2048;

/** @throws NodeError of a type that there is not, or of a size that is of no use */
export async function generateKey({ type, size = defaultBits }: KeyOptions): Promise<Key> {
  const name = type.toLowerCase();
  if (name === "ed25519") return decodeKey(privateKeyToProtobuf(await generateKeyPair("Ed25519")));
  if (name !== "rsa") throw new NodeError(`unrecognized key type: ${type}`);
  requireBits(size);
  return decodeKey(privateKeyToProtobuf(await generateKeyPair("RSA", size)));
}

function requireBits(bits: number): void {
  const least = process.env.LIBP2P_ALLOW_WEAK_RSA_KEYS === undefined ? MIN_RSA_BITS : 512;
  if (bits < least) throw new NodeError(`rsa keys must be >= ${least} bits to be useful`);
  if (bits > MAX_RSA_BITS) throw new NodeError(`rsa keys must be <= ${MAX_RSA_BITS} bits to be of use to others`);
}

/** @throws NodeError when the bytes are no private key */
export function decodeKey(bytes: Uint8Array): Key {
  const { type, data } = fieldsOf(bytes);
  const kind = kinds[type];
  if (kind === undefined) throw new NodeError("invalid or unsupported key type");
  const { secret = data, open } = kind(data);
  const publicKey = protobuf(type, open);
  return { bytes: protobuf(type, secret), id: peerIdOf(publicKey), publicKey };
}

/** The section of the configuration that makes a key the node's identity. */
export const identityOf = ({ bytes, id }: Key): IdentityConfig => ({
  PeerID: id.toString(),
  PrivKey: Buffer.from(bytes).toString("base64"),
});

function fieldsOf(bytes: Uint8Array): { readonly type: number; readonly data: Uint8Array } {
  const reader = new FieldReader(bytes);
  let type: number | undefined;
  let data: Uint8Array | undefined;
  while (reader.next()) {
    if (reader.field === 1) type = reader.number;
    else if (reader.field === 2) data = reader.bytes;
  }
  if (type === undefined) throw new NodeError('proto: required field "Type" not set');
  if (data === undefined) throw new NodeError('proto: required field "Data" not set');
  return { type, data };
}

function protobuf(type: number, data: Uint8Array): Uint8Array {
  const head = 3 + varintLength(data.length);
  const bytes = new Uint8Array(head + data.length);
  bytes.set([0x08, type, 0x12]);
  bytes.set(data, writeVarint(bytes, 3, data.length));
  return bytes;
}

/** Public keys of at most so many bytes are their own id. */
const MAX_INLINE_KEY = 42;

/** @param publicKey its protobuf */
export function peerIdOf(publicKey: Uint8Array): PeerId {
  if (publicKey.length <= MAX_INLINE_KEY) return peerIdFromMultihash(createDigest(identity.code, publicKey));
  return peerIdFromMultihash(createDigest(sha256.code, hash("sha256", publicKey, "buffer")));
}

// -------------------------------------------------------------------------------------------------------- the kinds

interface Parts {
  /** The canonical form of the private data, where it is not what came. */
  readonly secret?: Uint8Array;
  /** Data of the public key. */
  readonly open: Uint8Array;
}

/** By their number in the protobuf. */
const kinds: Readonly<Record<number, (data: Uint8Array) => Parts>> = { 0: rsa, 1: ed25519, 2: secp256k1, 3: ecdsa };

function ed25519(data: Uint8Array): Parts {
  const [seed, publicKey, repeated] = [data.subarray(0, 32), data.subarray(32, 64), data.subarray(64)];
  if (data.length !== 64 && data.length !== 96) {
    throw new NodeError(`expected ed25519 data size to be 64 or 96, got ${data.length}`);
  }
  if (repeated.length > 0 && Buffer.compare(publicKey, repeated) !== 0) {
    throw new NodeError("expected redundant ed25519 public key to be redundant");
  }
  return { secret: Buffer.concat([seed, publicKey]), open: publicKey };
}

function secp256k1(data: Uint8Array): Parts {
  if (data.length !== 32) throw new NodeError("expected secp256k1 data size to be 32");
  const pair = createECDH("secp256k1");
  try {
    pair.setPrivateKey(data);
  } catch (error) {
    throw new NodeError("the secp256k1 key is none: it is not between 1 and the order of the curve", { cause: error });
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
  if (!curves.includes(key.asymmetricKeyDetails?.namedCurve)) throw new NodeError("x509: unknown elliptic curve");
  return { open: publicPart(key) };
}

function read(data: Uint8Array, type: "pkcs1" | "sec1", words: string): KeyObject {
  try {
    return createPrivateKey({ key: Buffer.from(data), format: "der", type });
  } catch (error) {
    throw new NodeError(`${words}: ${(error as Error).message}`, { cause: error });
  }
}

const publicPart = (key: KeyObject): Uint8Array => createPublicKey(key).export({ type: "spki", format: "der" });
