/** Validates and compares DHT records by the namespace of the key: `/ipns/` and `/pk/`. */
import type { SelectFn, Selectors, ValidateFn, Validators } from "@libp2p/kad-dht";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { peerIdOf } from "../../storage/keystore/key.ts";
import { failure } from "../../util/errors.ts";
import { checkRecord, compareRecords } from "../ipns_record/check.ts";
import { nameOfRecord } from "../ipns_record/keys.ts";
import { MAX_RECORD_SIZE } from "../ipns_record/record.ts";

interface Namespace {
  /** @throws NodeError with go-ipfs's texts */
  validate(key: Uint8Array, value: Uint8Array): void | Promise<void>;
  /** Returns a positive number if the first record is better. */
  compare(one: Uint8Array, other: Uint8Array): number;
}

const PUBLIC_KEY_PREFIX = "/pk/";

const namespaces: Readonly<Record<string, Namespace>> = {
  ipns: {
    async validate(key, value) {
      await checkRecord(nameOfRecord(key), value);
    },
    compare: compareRecords,
  },
  pk: {
    validate(key, value) {
      if (value.length > MAX_RECORD_SIZE)
        throw failure("RECORD_INVALID", { reason: "public key does not match storage key" });
      const hash = key.subarray(PUBLIC_KEY_PREFIX.length);
      requireMultihash(hash);
      if (Buffer.compare(peerIdOf(value).toMultihash().bytes, hash) !== 0) {
        throw failure("RECORD_INVALID", { reason: "public key does not match storage key" });
      }
    },
    // All valid records of a key contain the same public key.
    compare: () => 0,
  },
};

function requireMultihash(bytes: Uint8Array): void {
  try {
    decodeMultihash(bytes);
  } catch (error) {
    throw failure(
      "RECORD_INVALID",
      { reason: `key did not contain valid multihash: ${(error as Error).message}` },
      error,
    );
  }
}

/** @throws NodeError for a key of another namespace */
function namespaceOf(key: Uint8Array): Namespace {
  const [, name = ""] = /^\/([a-z]+)\//.exec(Buffer.from(key.subarray(0, 16)).toString("latin1")) ?? [];
  const namespace = Object.hasOwn(namespaces, name) ? namespaces[name] : undefined;
  if (namespace === undefined) throw failure("RECORD_INVALID", { reason: "invalid record keytype" });
  return namespace;
}

/** @throws NodeError for a key of another namespace */
export function requireNamespace(key: Uint8Array): void {
  namespaceOf(key);
}

/** @throws NodeError with go-ipfs's text for an invalid value */
export async function validate(key: Uint8Array, value: Uint8Array): Promise<void> {
  await namespaceOf(key).validate(key, value);
}

export const isValid = (key: Uint8Array, value: Uint8Array): Promise<boolean> =>
  validate(key, value).then(
    () => true,
    () => false,
  );

/** Returns a positive number if the first record is better; both must be valid. */
export const compare = (key: Uint8Array, one: Uint8Array, other: Uint8Array): number =>
  namespaceOf(key).compare(one, other);

const validateOne: ValidateFn = (key, value) => validate(key, value);

const selectBest: SelectFn = (key, records) =>
  records.reduce((best, record, at) => (compare(key, record, records[best] as Uint8Array) > 0 ? at : best), 0);

const each = <T>(value: T): Record<string, T> =>
  Object.fromEntries(Object.keys(namespaces).map((name) => [name, value]));

export const validators: Validators = each(validateOne);
export const selectors: Selectors = each(selectBest);
