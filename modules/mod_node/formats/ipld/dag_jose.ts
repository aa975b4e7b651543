/**
 * Signed and encrypted nodes ("DAG-JOSE specification"). A block is dag-cbor with bytes in all
 * fields that the value shows as base64url text. The payload of a signed node is a CID; the value
 * also shows it as a link.
 */
import { CID } from "multiformats/cid";
import type { Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { decodeCborSteps, type Value, type ValueMap } from "../dag_cbor/value.ts";
import { encodeCborSteps } from "../dag_cbor/write.ts";

type Convert = (value: Value, name: string) => Value;
type Fields = Readonly<Record<string, Convert>>;

const same: Convert = (value) => value;

const toText: Convert = (value, name) => {
  if (!(value instanceof Uint8Array)) throw failure("DAG_JOSE_INVALID", { reason: `${quote(name)} is not bytes` });
  return Buffer.from(value).toString("base64url");
};

const toBytes: Convert = (value, name) => {
  const bytes = typeof value === "string" ? Buffer.from(value, "base64url") : undefined;
  if (bytes?.toString("base64url") !== value)
    throw failure("DAG_JOSE_INVALID", { reason: `${quote(name)} is not a text in base64url` });
  return new Uint8Array(bytes);
};

const list =
  (fields: Fields): Convert =>
  (value, name) => {
    if (!Array.isArray(value)) throw failure("DAG_JOSE_INVALID", { reason: `${quote(name)} is not a list` });
    return value.map((each) => converted(each, fields));
  };

const signed = (bytes: Convert): Fields => ({
  payload: bytes,
  signatures: list({ header: same, protected: bytes, signature: bytes }),
});

const encrypted = (bytes: Convert): Fields => ({
  aad: bytes,
  ciphertext: bytes,
  iv: bytes,
  protected: bytes,
  recipients: list({ encrypted_key: bytes, header: same }),
  tag: bytes,
  unprotected: same,
});

/** @throws NodeError if the value is not a map, or has keys other than `fields` */
function converted(value: Value, fields: Fields): ValueMap {
  if (!(value instanceof Map)) throw failure("DAG_JOSE_INVALID", { reason: "a part of a dag-jose node is not a map" });
  return new Map(
    value.entries().map(([name, each]) => {
      const convert = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (convert === undefined)
        throw failure("DAG_JOSE_INVALID", { reason: `a dag-jose node has no field ${quote(name)}` });
      return [name, convert(each, name)];
    }),
  );
}

const isEncrypted = (value: Value): boolean => value instanceof Map && value.has("ciphertext");

/** @throws NodeError */
function payloadCid(value: Value | undefined): CID {
  try {
    return CID.decode(value as Uint8Array);
  } catch (error) {
    throw failure("DAG_JOSE_INVALID", { reason: `payload is not a valid CID: ${(error as Error).message}` }, error);
  }
}

/** Decodes a block in steps. @throws NodeError if the bytes are not a dag-jose node */
export function* decodeJoseSteps(bytes: Uint8Array): Steps<Value> {
  const value = yield* decodeCborSteps(bytes, "strict");
  if (isEncrypted(value)) return converted(value, encrypted(toText));
  const node = converted(value, signed(toText));
  return new Map<string, Value>([["link", payloadCid((value as ValueMap).get("payload"))], ...node]);
}

/** Encodes a node in steps. @throws NodeError if the value is not a dag-jose node */
export function* encodeJoseSteps(value: Value): Steps<Uint8Array> {
  if (isEncrypted(value)) return yield* encodeCborSteps(converted(value, encrypted(toBytes)));
  const node = converted(value, { ...signed(toBytes), link: same });
  node.delete("link");
  payloadCid(node.get("payload"));
  return yield* encodeCborSteps(node);
}
