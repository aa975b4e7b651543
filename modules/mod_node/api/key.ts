/** The keys that names are published with. */
import { base64url } from "multiformats/bases/base64";
import { decodeText } from "../formats/cid/multibase_text.ts";
import { type PeerId, parsePeerId, peerIdEncoder } from "../formats/peer_id.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { inlinesPublicKey } from "../network/ipns_record/keys.ts";
import type { NamedKey } from "../storage/keystore/keystore.ts";
import { keyOfPem } from "../storage/keystore/pem.ts";
import { rotateIdentity } from "../storage/keystore/rotate.ts";
import { isSignedBy, signWith } from "../storage/keystore/signing.ts";
import { readAll } from "../util/async/read_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import { quote } from "../util/go/text.ts";
import { type ByteSource, type CallOptions, piecesOf } from "./common.ts";

export interface KeyOptions extends CallOptions {
  /** How ids are written: `b58mh`, or the multibase of a CID such as `base32`; `base36` by default. */
  readonly ipnsBase?: string | undefined;
}

/** Type and size of a new key. */
export interface KeyForm {
  /** `ed25519`, which is the default, or `rsa`. */
  readonly type?: string | undefined;
  /** Bits of an RSA key; 2048 by default. */
  readonly size?: number | undefined;
}

export interface KeyRotateOptions extends CallOptions, KeyForm {
  /** Name under which the old identity is kept as a key. */
  readonly oldkey: string | undefined;
}

export interface Key {
  readonly name: string;
  /** The IPNS name of the key. */
  readonly id: string;
}

export interface KeyImportOptions extends KeyOptions {
  /** `libp2p-protobuf-cleartext`, as `export` gives it, which is the default, or `pem-pkcs8-cleartext`. */
  readonly format?: string | undefined;
  /** Also take keys in PEM that are neither Ed25519 nor RSA. */
  readonly anyType?: boolean | undefined;
}

export interface KeySignOptions extends KeyOptions {
  /** An own key by its name or its IPNS name; `self` by default. */
  readonly key?: string | undefined;
}

export interface KeySignResult {
  readonly key: Key;
  /** Multibase, in base64url. */
  readonly signature: string;
}

export interface KeyVerifyResult {
  /** Its name is empty where it was given by its id. */
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
  /** The node's own key, `self`, then the others by name. */
  list(options?: KeyOptions): Promise<Key[]>;
  /** @throws NodeError if there is no such key */
  info(name: string, options?: KeyOptions): Promise<Key>;
  rename(
    was: string,
    now: string,
    options?: KeyOptions & { readonly force?: boolean | undefined },
  ): Promise<KeyRenameResult>;
  rm(name: string, options?: KeyOptions): Promise<Key>;
  /** Exports a private key, as unencrypted libp2p protobuf. */
  export(name: string, options?: CallOptions): Promise<Uint8Array>;
  /** Imports an exported key of at most 64 KiB. */
  import(name: string, file: ByteSource, options?: KeyImportOptions): Promise<Key>;
  /** Signs data with a key, in a way that no record of a name is signed. @throws NodeError for an unknown key */
  sign(data: ByteSource, options?: KeySignOptions): Promise<KeySignResult>;
  /**
   * Whether a signature of `sign` (multibase) is of that data by that key: an own one, or that of a peer id or IPNS name that
   * contains its public key. @throws NodeError for an unknown key, and for a signature that is no multibase text
   */
  verify(data: ByteSource, signature: string, options?: KeySignOptions): Promise<KeyVerifyResult>;
  /** Creates a new identity, used from the next start on, and keeps the old one as a key. */
  rotate(options: KeyRotateOptions): Promise<void>;
}

/** Bytes. */
const MAX_KEY_FILE = 64 * 1024;

const usualBase = "base36";

/** @throws NodeError for an unknown base */
function encoder({ ipnsBase = usualBase }: KeyOptions): (key: NamedKey) => Key {
  const encode: (id: PeerId) => string = peerIdEncoder(ipnsBase);
  return ({ name, id }) => ({ name, id: encode(id) });
}

/** @throws NodeError KEYS_NOT_WRITTEN likewise: the reference has words of its own here */
function listEncoder(options: KeyOptions): (key: NamedKey) => Key {
  try {
    return encoder(options);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw failure("KEYS_NOT_WRITTEN", { reason: error.message }, error);
  }
}

const formOf = ({ type = "ed25519", size }: KeyForm) => ({ type, size });

const PROTOBUF = "libp2p-protobuf-cleartext";

/** The bytes that `Keystore.import` takes. @throws NodeError in the words of Kubo */
function keyBytes(file: Uint8Array, { format = PROTOBUF, anyType }: KeyImportOptions): Uint8Array {
  const text = Buffer.from(file.buffer, file.byteOffset, file.length).toString("latin1");
  if (format === "pem-pkcs8-cleartext") return keyOfPem(text, { anyType });
  if (format !== PROTOBUF) throw new NodeError(`unrecognized import format: ${format}`);
  if (!text.trimStart().startsWith("-----BEGIN ")) return file;
  throw new NodeError(`unexpected PEM block for format=${PROTOBUF}: try again with format=pem-pkcs8-cleartext`);
}

/** Before the data that `sign` signs: so what it signs is nothing else. */
const SIGNED_PREFIX = Buffer.from("libp2p-key signed message:");
/** Bytes of data that are signed; they are held in memory. */
const MAX_SIGNED = 64 * 1024 * 1024;

async function signedBytes(data: ByteSource): Promise<Uint8Array> {
  const tooLong = () => new NodeError(`more than ${MAX_SIGNED} bytes are not signed`);
  return Buffer.concat([SIGNED_PREFIX, await readAll(piecesOf(data), MAX_SIGNED, tooLong)]);
}

/** An own key by its name, or the public key in an id. */
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
      throw new NodeError(`'${quote(text)}' is not a known key, an IPNS Name, or a valid PeerID`);
    }
  }
  if (own !== undefined) return { name: id === undefined ? text : "", id: own.id, publicKey: own.publicKey };
  const known = id as PeerId;
  if (!inlinesPublicKey(known)) throw new NodeError(`the public key of ${known} is not in its id`);
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
    async export(name) {
      return keys.export(name);
    },
    async import(name, file, options = {}) {
      const shown = encoder(options);
      const tooLong = () => new NodeError(`the file is longer than ${MAX_KEY_FILE} bytes`);
      const bytes = keyBytes(await readAll(piecesOf(file), MAX_KEY_FILE, tooLong), options);
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
