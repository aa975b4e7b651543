/** Manages the keys that names are published with. */
import { base64url } from "multiformats/bases/base64";
import { decodeText } from "../formats/cid/multibase_text.ts";
import { type PeerId, parsePeerId, peerIdEncoder } from "../formats/peer_id.ts";
import { inlinesPublicKey } from "../network/ipns_record/keys.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { KEY_TYPES, keyParts } from "../storage/keystore/key.ts";
import type { NamedKey } from "../storage/keystore/keystore.ts";
import { keyOfPem, pemOfKey } from "../storage/keystore/pem.ts";
import { rotateIdentity } from "../storage/keystore/rotate.ts";
import { isSignedBy, signWith } from "../storage/keystore/signing.ts";
import { readAll } from "../util/async/read_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import { quote } from "../util/go/text.ts";
import { type ByteSource, type CallOptions, piecesOf } from "./common.ts";

export interface KeyOptions extends CallOptions {
  /**
   * How ids are written: `b58mh`, or the multibase of a CID such as `base32`; `base36` by default.
   */
  readonly ipnsBase?: string | undefined;
}

/** Type and size of a new key. */
export interface KeyForm {
  /** `ed25519`, which is the default, `rsa` or `secp256k1`. */
  readonly type?: string | undefined;
  /** Bits of an RSA key; 2048 by default. */
  readonly size?: number | undefined;
  /**
   * Refuse a `size` for types whose keys have a fixed size, unless it is that size; false by
   * default.
   */
  readonly exact?: boolean | undefined;
}

export interface KeyRotateOptions extends CallOptions, KeyForm {
  /** Name under which the old identity is stored as a key. */
  readonly oldkey: string | undefined;
}

export interface Key {
  readonly name: string;
  /** The IPNS name of the key. */
  readonly id: string;
}

export interface KeyImportOptions extends KeyOptions {
  /**
   * `libp2p-protobuf-cleartext` (default), which is the format of `export`, or
   * `pem-pkcs8-cleartext`.
   */
  readonly format?: string | undefined;
  /** Also accept keys that are neither Ed25519, RSA nor secp256k1; true by default. */
  readonly anyType?: boolean | undefined;
}

export interface KeyExportOptions extends CallOptions {
  /** `libp2p-protobuf-cleartext` (default) or `pem-pkcs8-cleartext`. */
  readonly format?: string | undefined;
}

export interface KeySignOptions extends KeyOptions {
  /** Key of the node, by its name or its IPNS name; `self` by default. */
  readonly key?: string | undefined;
}

export interface KeySignResult {
  readonly key: Key;
  /** The signature as multibase text in base64url. */
  readonly signature: string;
}

export interface KeyVerifyResult {
  /** The name is empty if the key was given by its id. */
  readonly key: Key;
  readonly isValid: boolean;
}

export interface KeyRenameResult {
  readonly id: string;
  readonly was: string;
  readonly now: string;
  /** Whether an existing key of the new name was replaced. */
  readonly overwrite: boolean;
}

export interface KeyApi {
  gen(name: string, options?: KeyOptions & KeyForm): Promise<Key>;
  /** Resolves to the node's own key, `self`, followed by the others sorted by name. */
  list(options?: KeyOptions): Promise<Key[]>;
  /** @throws NodeError if there is no such key */
  info(name: string, options?: KeyOptions): Promise<Key>;
  rename(
    was: string,
    now: string,
    options?: KeyOptions & { readonly force?: boolean | undefined },
  ): Promise<KeyRenameResult>;
  rm(name: string, options?: KeyOptions): Promise<Key>;
  /** Exports a private key, unencrypted. */
  export(name: string, options?: KeyExportOptions): Promise<Uint8Array>;
  /** Imports an exported key of at most 64 KiB. */
  import(name: string, file: ByteSource, options?: KeyImportOptions): Promise<Key>;
  /**
   * Signs data with a key. The signature can never be that of an IPNS record. @throws NodeError for
   * an unknown key
   */
  sign(data: ByteSource, options?: KeySignOptions): Promise<KeySignResult>;
  /**
   * Checks whether a signature of `sign` (multibase) matches the data and the key: one of the
   * node's keys, or a peer id or IPNS name that contains its public key.
   *
   * @throws NodeError for an unknown key, and for a signature that is not multibase text
   */
  verify(data: ByteSource, signature: string, options?: KeySignOptions): Promise<KeyVerifyResult>;
  /**
   * Creates a new identity, which takes effect at the next start, and stores the old one as a key.
   */
  rotate(options: KeyRotateOptions): Promise<void>;
}

/** Maximum size of a key file in bytes. */
const MAX_KEY_FILE = 64 * 1024;

const usualBase = "base36";

/** @throws NodeError for an unknown base */
function encoder({ ipnsBase = usualBase }: KeyOptions): (key: NamedKey) => Key {
  const encode: (id: PeerId) => string = peerIdEncoder(ipnsBase);
  return ({ name, id }) => ({ name, id: encode(id) });
}

/**
 * @throws NodeError KEYS_NOT_WRITTEN for an unknown base: the reference has a different text here
 */
function listEncoder(options: KeyOptions): (key: NamedKey) => Key {
  try {
    return encoder(options);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw failure("KEYS_NOT_WRITTEN", { reason: error.message }, error);
  }
}

const formOf = ({ type = "ed25519", size, exact }: KeyForm) => ({ type, size, exact });

const PROTOBUF = "libp2p-protobuf-cleartext";
const PEM = "pem-pkcs8-cleartext";

/** Returns the bytes that `Keystore.import` accepts. @throws NodeError with Kubo's texts */
function keyBytes(file: Uint8Array, format: string): Uint8Array {
  const text = Buffer.from(file.buffer, file.byteOffset, file.length).toString("latin1");
  if (format === PEM) return keyOfPem(text);
  if (format !== PROTOBUF) throw failure("OPTION_INVALID", { reason: `unrecognized import format: ${format}` });
  if (!text.trimStart().startsWith("-----BEGIN ")) return file;
  throw failure("KEY_INVALID", {
    reason: `unexpected PEM block for format=${PROTOBUF}: try again with format=pem-pkcs8-cleartext`,
  });
}

/** @throws NodeError with Kubo's text */
function requireUsual(bytes: Uint8Array): void {
  if (keyParts(bytes).type !== KEY_TYPES.ecdsa) return;
  throw failure("KEY_INVALID", {
    reason:
      "key type *crypto.ECDSAPrivateKey is not allowed to be imported, only RSA, Ed25519, or Secp256k1; use flag --allow-any-key-type if you are sure of what you're doing",
  });
}

/**
 * `sign` puts this prefix before the data, so that its signatures cannot pass as signatures of
 * anything else.
 */
const SIGNED_PREFIX = Buffer.from("libp2p-key signed message:");
/** Maximum number of bytes to sign; they are buffered in memory. */
const MAX_SIGNED = 64 * 1024 * 1024;

async function signedBytes(data: ByteSource): Promise<Uint8Array> {
  const tooLong = () => failure("INPUT_TOO_LARGE", { reason: `more than ${MAX_SIGNED} bytes are not signed` });
  return Buffer.concat([SIGNED_PREFIX, await readAll(piecesOf(data), MAX_SIGNED, tooLong)]);
}

/** Finds one of the node's keys by its name, or extracts the public key from an id. */
async function verifyingKey(
  { names }: LowLevelNode,
  text: string,
): Promise<NamedKey & { readonly publicKey: Uint8Array }> {
  const own = await names.key(text).catch(() => undefined);
  let id: PeerId | undefined;
  try {
    id = parsePeerId(text.replace(/^\/ipns\//, ""));
  } catch {
    if (own === undefined) {
      throw failure("KEY_NOT_FOUND", {
        reason: `'${quote(text)}' is not a known key, an IPNS Name, or a valid PeerID`,
      });
    }
  }
  if (own !== undefined) return { name: id === undefined ? text : "", id: own.id, publicKey: own.publicKey };
  const known = id as PeerId;
  if (!inlinesPublicKey(known))
    throw failure("KEY_NOT_FOUND", { reason: `the public key of ${known} is not in its id` });
  return { name: "", id: known, publicKey: known.toMultihash().digest };
}

export function keyApi(node: LowLevelNode): KeyApi {
  const { keys, repo } = node;
  return {
    async gen(name, options = {}) {
      const shown = encoder(options);
      return shown(await keys.generate(name, formOf(options)));
    },
    async list(options = {}) {
      const shown = listEncoder(options);
      return (await keys.list()).map(shown);
    },
    async info(name, options = {}) {
      const shown = encoder(options);
      return shown(await keys.named(name));
    },
    async rename(was, now, options = {}) {
      const shown = encoder(options);
      const { overwritten: overwrite, ...key } = await keys.rename(was, now, options.force === true);
      return { id: shown(key).id, was, now, overwrite };
    },
    async rm(name, options = {}) {
      const shown = encoder(options);
      return shown(await keys.remove(name));
    },
    async export(name, { format = PROTOBUF } = {}) {
      if (format !== PROTOBUF && format !== PEM)
        throw failure("OPTION_INVALID", { reason: `unrecognized export format: ${format}` });
      const bytes = await keys.export(name);
      return format === PEM ? Buffer.from(pemOfKey(bytes)) : bytes;
    },
    async import(name, file, { format = PROTOBUF, anyType = true, ...options } = {}) {
      const shown = encoder(options);
      const tooLong = () => failure("INPUT_TOO_LARGE", { reason: `the file is longer than ${MAX_KEY_FILE} bytes` });
      const bytes = keyBytes(await readAll(piecesOf(file), MAX_KEY_FILE, tooLong), format);
      if (!anyType) requireUsual(bytes);
      return shown(await keys.import(name, bytes));
    },
    async sign(data, { key: name = "self", ...options } = {}) {
      const shown = encoder(options);
      const key = await node.names.key(name);
      const signature = await signWith(key.bytes, await signedBytes(data));
      const { name: own = name } = (await keys.list()).find(({ id }) => id.equals(key.id)) ?? {};
      return { key: shown({ name: own, id: key.id }), signature: base64url.encode(signature) };
    },
    async verify(data, text, { key: name = "self", ...options } = {}) {
      const shown = encoder(options);
      const { publicKey, ...key } = await verifyingKey(node, name);
      const signature = decodeText(text);
      return { key: shown(key), isValid: await isSignedBy(publicKey, await signedBytes(data), signature) };
    },
    async rotate({ oldkey, ...form }) {
      await rotateIdentity(repo.config, keys, oldkey, formOf(form));
    },
  };
}
