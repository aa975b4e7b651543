/** Private keys in PEM (PKCS #8), as programs besides libp2p have them. */
import { createPrivateKey, type KeyObject } from "node:crypto";
import { NodeError } from "../../util/errors.ts";
import { KEY_TYPES, keyProtobuf } from "./key.ts";

/**
 * The key as libp2p writes it. Keys of other types than Ed25519 and RSA are taken with `anyType`.
 *
 * @throws NodeError in the words of Kubo
 */
export function keyOfPem(
  text: string,
  { anyType = false }: { readonly anyType?: boolean | undefined } = {},
): Uint8Array {
  const [, type] = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(text) ?? [];
  if (type === undefined) throw new NodeError(`PEM block not found in input data:\n${text.trimEnd()}`);
  if (type !== "PRIVATE KEY") throw new NodeError(`expected PRIVATE KEY type in PEM block but got: ${type}`);
  const key = parsed(text);
  if (key.asymmetricKeyType === "ed25519") {
    const { d = "", x = "" } = key.export({ format: "jwk" });
    return keyProtobuf(KEY_TYPES.ed25519, Buffer.concat([Buffer.from(d, "base64url"), Buffer.from(x, "base64url")]));
  }
  if (key.asymmetricKeyType === "rsa") {
    return keyProtobuf(KEY_TYPES.rsa, key.export({ format: "der", type: "pkcs1" }));
  }
  if (!anyType)
    throw new NodeError(`key type is not allowed to be imported, only RSA or Ed25519: use --allow-any-key-type`);
  if (key.asymmetricKeyDetails?.namedCurve === "secp256k1") {
    return keyProtobuf(KEY_TYPES.secp256k1, Buffer.from(key.export({ format: "jwk" }).d ?? "", "base64url"));
  }
  if (key.asymmetricKeyType === "ec") {
    return keyProtobuf(KEY_TYPES.ecdsa, key.export({ format: "der", type: "sec1" }));
  }
  throw new NodeError(`a key of type ${key.asymmetricKeyType} cannot be used`);
}

function parsed(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch (error) {
    throw new NodeError(`parsing PKCS8 format: ${(error as Error).message}`, { cause: error });
  }
}
