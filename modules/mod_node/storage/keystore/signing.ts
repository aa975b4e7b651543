/** Signatures with libp2p's keys, of all four types. Keys are protobufs: storage and peers hand them about like that. */
import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { privateKeyFromProtobuf, publicKeyFromProtobuf } from "@libp2p/crypto/keys";
import { FieldReader } from "../../formats/protobuf/fields.ts";

const ecdsa = 3;

/** The library behind the other types cannot read the ECDSA keys of the reference. */
function ecdsaData(protobuf: Uint8Array): Buffer | undefined {
  const reader = new FieldReader(protobuf);
  let type = 0;
  let data: Uint8Array = new Uint8Array(0);
  while (reader.next()) {
    if (reader.field === 1) type = reader.number;
    else if (reader.field === 2) data = reader.bytes;
  }
  return type === ecdsa ? Buffer.from(data) : undefined;
}

/** @param key protobuf of the private key */
export async function signWith(key: Uint8Array, message: Uint8Array): Promise<Uint8Array> {
  const data = ecdsaData(key);
  if (data === undefined) return privateKeyFromProtobuf(key).sign(message);
  return sign("sha256", message, createPrivateKey({ key: data, format: "der", type: "sec1" }));
}

/** False also for keys and signatures that are none. @param key protobuf of the public key */
export async function isSignedBy(key: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  try {
    const data = ecdsaData(key);
    if (data === undefined) return await publicKeyFromProtobuf(key).verify(message, signature);
    return verify("sha256", message, createPublicKey({ key: data, format: "der", type: "spki" }), signature);
  } catch {
    return false;
  }
}
