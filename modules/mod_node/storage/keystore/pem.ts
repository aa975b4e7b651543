/** Private keys in PEM (PKCS #8), the format of programs other than libp2p. */
import { createECDH, createPrivateKey, type JsonWebKey, type KeyObject } from "node:crypto";
import { failure } from "../../util/errors.ts";
import { KEY_TYPES, keyParts, keyProtobuf } from "./key.ts";

/**
 * Decodes PEM and returns the key in the format of libp2p.
 *
 * @throws NodeError with the texts of Kubo
 */
export function keyOfPem(text: string): Uint8Array {
  const [block, type] = /-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----/.exec(text) ?? [];
  if (block === undefined)
    throw failure("KEY_INVALID", { reason: `PEM block not found in input data:\n${text.trimEnd()}` });
  if (type !== "PRIVATE KEY")
    throw failure("KEY_INVALID", { reason: `expected PRIVATE KEY type in PEM block but got: ${type}` });
  const key = parsed(block);
  if (key.asymmetricKeyType === "ed25519") {
    const { d = "", x = "" } = key.export({ format: "jwk" });
    return keyProtobuf(KEY_TYPES.ed25519, Buffer.concat([Buffer.from(d, "base64url"), Buffer.from(x, "base64url")]));
  }
  if (key.asymmetricKeyType === "rsa") {
    return keyProtobuf(KEY_TYPES.rsa, key.export({ format: "der", type: "pkcs1" }));
  }
  if (key.asymmetricKeyDetails?.namedCurve === "secp256k1") {
    return keyProtobuf(KEY_TYPES.secp256k1, Buffer.from(key.export({ format: "jwk" }).d ?? "", "base64url"));
  }
  if (key.asymmetricKeyType === "ec") {
    return keyProtobuf(KEY_TYPES.ecdsa, key.export({ format: "der", type: "sec1" }));
  }
  throw failure("KEY_INVALID", { reason: "converting std Go key to libp2p key: invalid or unsupported key type" });
}

/**
 * Encodes a key in the format of libp2p as PEM.
 * @throws NodeError when the bytes are not a key
 */
export const pemOfKey = (bytes: Uint8Array): string =>
  keyObject(bytes).export({ format: "pem", type: "pkcs8" }) as string;

const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
const ofJwk = (key: JsonWebKey) => createPrivateKey({ key, format: "jwk" });
const ofDer = (key: Uint8Array, type: "pkcs1" | "sec1") =>
  createPrivateKey({ key: Buffer.from(key), format: "der", type });

function keyObject(bytes: Uint8Array): KeyObject {
  const { type, data } = keyParts(bytes);
  if (type === KEY_TYPES.rsa) return ofDer(data, "pkcs1");
  if (type === KEY_TYPES.ecdsa) return ofDer(data, "sec1");
  if (type === KEY_TYPES.ed25519) {
    const d = base64url(data.subarray(0, 32));
    const x = base64url(data.subarray(32));
    return ofJwk({ kty: "OKP", crv: "Ed25519", d, x });
  }
  const pair = createECDH("secp256k1");
  pair.setPrivateKey(data);
  const point = pair.getPublicKey();
  const x = base64url(point.subarray(1, 33));
  const y = base64url(point.subarray(33));
  return ofJwk({ kty: "EC", crv: "secp256k1", d: base64url(data), x, y });
}

function parsed(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch (error) {
    throw failure("KEY_INVALID", { reason: `parsing PKCS8 format: ${(error as Error).message}` }, error);
  }
}
