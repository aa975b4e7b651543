/**
 * Signs and verifies with libp2p keys of all four types. Keys are passed as their protobuf
 * messages.
 */
import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { privateKeyFromProtobuf, publicKeyFromProtobuf } from "@libp2p/crypto/keys";
import { FieldReader } from "../../formats/protobuf/fields.ts";
import { KEY_FIELDS, KEY_TYPES } from "./key.ts";

/**
 * Returns the data of an ECDSA key; undefined for other types. @libp2p/crypto cannot read ECDSA
 * keys in the format of go-libp2p.
 */
function ecdsaData(protobuf: Uint8Array): Buffer | undefined {
  const reader = new FieldReader(protobuf);
  let type = 0;
  let data: Uint8Array = new Uint8Array(0);
  while (reader.next()) {
    if (reader.field === KEY_FIELDS.type) type = reader.number;
    else if (reader.field === KEY_FIELDS.data) data = reader.bytes;
  }
  return type === KEY_TYPES.ecdsa ? Buffer.from(data) : undefined;
}

/**
 * Signs a message.
 * @param key protobuf of the private key
 */
export async function signWith(key: Uint8Array, message: Uint8Array): Promise<Uint8Array> {
  const data = ecdsaData(key);
  if (data === undefined) return privateKeyFromProtobuf(key).sign(message);
  return sign("sha256", message, createPrivateKey({ key: data, format: "der", type: "sec1" }));
}

/**
 * Verifies a signature. Resolves with false for malformed keys and signatures as well.
 * @param key protobuf of the public key
 */
export async function isSignedBy(key: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  try {
    const data = ecdsaData(key);
    if (data === undefined) return await publicKeyFromProtobuf(key).verify(message, signature);
    return verify("sha256", message, createPublicKey({ key: data, format: "der", type: "spki" }), signature);
  } catch {
    return false;
  }
}
