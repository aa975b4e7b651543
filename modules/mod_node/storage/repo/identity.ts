/** The identity of the node: its peer id and private key, in the format of the configuration. */
import {
  generateKeyPair,
  privateKeyFromProtobuf,
  privateKeyToProtobuf,
  publicKeyToProtobuf,
} from "@libp2p/crypto/keys";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import { failure } from "../../util/errors.ts";
import { decodeBase64 } from "../../util/go/base64.ts";

export type PrivateKey = ReturnType<typeof privateKeyFromProtobuf>;
export type PublicKey = PrivateKey["publicKey"];

export interface Identity {
  readonly peerId: PeerId;
  readonly privateKey: PrivateKey;
}

/** The section `Identity` of the configuration. */
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

/**
 * Decodes an identity.
 * @throws NodeError with the text of go-ipfs when the peer id or the key is missing or malformed,
 * or they do not belong together
 */
export function readIdentity({ PeerID, PrivKey = "" }: { PeerID: string; PrivKey?: string | undefined }): Identity {
  if (PeerID === "")
    throw failure("IDENTITY_INVALID", { reason: "identity was not set in config (was 'ipfs init' run?)" });
  const named = readPeerId(PeerID);
  if (PrivKey === "") throw failure("IDENTITY_INVALID", { reason: `missing private key for node ID: ${PeerID}` });
  const privateKey = readKey(PrivKey);
  const peerId = peerIdFromPrivateKey(privateKey);
  if (!peerId.equals(named))
    throw failure("IDENTITY_INVALID", { reason: `private key in config does not match id: ${named} != ${peerId}` });
  return { peerId, privateKey };
}

function readPeerId(text: string): PeerId {
  try {
    return parsePeerId(text);
  } catch (error) {
    throw failure("IDENTITY_INVALID", { reason: `peer ID invalid: ${(error as Error).message}` }, error);
  }
}

function readKey(text: string): PrivateKey {
  const bytes = decodeBase64(text);
  try {
    return privateKeyFromProtobuf(bytes);
  } catch (error) {
    throw failure(
      "IDENTITY_INVALID",
      { reason: `the private key in the config cannot be read: ${(error as Error).message}` },
      error,
    );
  }
}

/** Returns a key in the format of the command `id`: its protobuf in base64. */
export const keyText = (key: PublicKey): string => Buffer.from(publicKeyToProtobuf(key)).toString("base64");

export const publicKeyText = ({ privateKey }: Identity): string => keyText(privateKey.publicKey);
