/** Who the node is: its peer id and the key behind it, as the configuration holds them. */
import {
  generateKeyPair,
  privateKeyFromProtobuf,
  privateKeyToProtobuf,
  publicKeyToProtobuf,
} from "@libp2p/crypto/keys";
import { peerIdFromMultihash, peerIdFromPrivateKey } from "@libp2p/peer-id";
import { base58btc } from "multiformats/bases/base58";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { baseNamed } from "../cid/bases.ts";
import { codecName, libp2pKey } from "../cid/codecs.ts";
import { parseCid } from "../cid/text.ts";
import { NodeError } from "../errors.ts";

export type PeerId = ReturnType<typeof peerIdFromMultihash>;
export type PrivateKey = ReturnType<typeof privateKeyFromProtobuf>;
export type PublicKey = PrivateKey["publicKey"];

export interface Identity {
  readonly peerId: PeerId;
  readonly privateKey: PrivateKey;
}

/** The section `Identity`. */
export interface IdentityConfig {
  readonly PeerID: string;
  /** Protobuf of the private key in base64. */
  readonly PrivKey: string;
}

export async function createIdentity(): Promise<IdentityConfig> {
  const key = await generateKeyPair("Ed25519");
  const PrivKey = Buffer.from(privateKeyToProtobuf(key)).toString("base64");
  return { PeerID: peerIdFromPrivateKey(key).toString(), PrivKey };
}

/** @throws NodeError with the reference's text when either is missing, broken, or not of the other */
export function readIdentity({ PeerID, PrivKey = "" }: { PeerID: string; PrivKey?: string | undefined }): Identity {
  if (PeerID === "") throw new NodeError("identity was not set in config (was 'ipfs init' run?)");
  const named = reworded("peer ID invalid", () => parsePeerId(PeerID));
  if (PrivKey === "") throw new NodeError(`missing private key for node ID: ${PeerID}`);
  const privateKey = readKey(PrivKey);
  const peerId = peerIdFromPrivateKey(privateKey);
  if (!peerId.equals(named)) throw new NodeError(`private key in config does not match id: ${named} != ${peerId}`);
  return { peerId, privateKey };
}

function readKey(text: string): PrivateKey {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) {
    throw new NodeError(`illegal base64 data at input byte ${firstIllegal(text)}`);
  }
  try {
    return privateKeyFromProtobuf(bytes);
  } catch (error) {
    throw new NodeError(`the private key in the config cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function firstIllegal(text: string): number {
  const at = text.search(/[^A-Za-z0-9+/]/);
  return at < 0 ? text.length - (text.length % 4) : at;
}

/** A peer id in any of its forms: base58 of the multihash, or a CID. @throws NodeError */
export function parsePeerId(text: string): PeerId {
  return reworded("failed to parse peer ID", () => {
    if (/^(?:Qm|1)/.test(text)) return peerIdFromMultihash(decodeMultihash(base58btc.decode(`z${text}`)));
    const cid = parseCid(text);
    if (cid.code !== libp2pKey) throw new NotAKey(`can't convert CID of type ${codecName(cid.code)} to a peer ID`);
    return peerIdFromMultihash(cid.multihash);
  });
}

/** Told as it is. */
class NotAKey extends NodeError {}

function reworded<T>(words: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof NotAKey) throw error;
    throw new NodeError(`${words}: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * How ids of peers and names are written: `b58mh` (or `v0`), or the multibase of a CID.
 *
 * @throws NodeError for a base that there is not
 */
export function peerIdEncoder(base: string): (id: PeerId) => string {
  if (base === "") throw new NodeError("Empty multibase encoding");
  if (base === "b58mh" || base === "v0") return String;
  const { encoder } = baseNamed(base);
  return (id) => id.toCID().toString(encoder);
}

/** As `id` shows it: its protobuf in base64. */
export const keyText = (key: PublicKey): string => Buffer.from(publicKeyToProtobuf(key)).toString("base64");

export const publicKeyText = ({ privateKey }: Identity): string => keyText(privateKey.publicKey);
