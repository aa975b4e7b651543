/** Which records are taken, and which of two is the better one, by what the key begins with. */
import type { SelectFn, Selectors, ValidateFn, Validators } from "@libp2p/kad-dht";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { peerIdOf } from "../../storage/keystore/key.ts";
import { NodeError } from "../../util/errors.ts";
import { checkRecord, compareRecords } from "../ipns_record/check.ts";
import { nameOfRecord } from "../ipns_record/keys.ts";
import { MAX_RECORD_SIZE } from "../ipns_record/record.ts";

interface Kind {
  /** @throws NodeError with the reference's text */
  validate(key: Uint8Array, value: Uint8Array): void | Promise<void>;
  /** Above zero when the first is the better one. */
  compare(one: Uint8Array, other: Uint8Array): number;
}

const publicKeyPrefix = "/pk/";

const kinds: Readonly<Record<string, Kind>> = {
  ipns: {
    async validate(key, value) {
      await checkRecord(nameOfRecord(key), value);
    },
    compare: compareRecords,
  },
  pk: {
    validate(key, value) {
      if (value.length > MAX_RECORD_SIZE) throw new NodeError("public key does not match storage key");
      const hash = key.subarray(publicKeyPrefix.length);
      mustBeMultihash(hash);
      if (Buffer.compare(peerIdOf(value).toMultihash().bytes, hash) !== 0) {
        throw new NodeError("public key does not match storage key");
      }
    },
    // All that are valid are the same key.
    compare: () => 0,
  },
};

function mustBeMultihash(bytes: Uint8Array): void {
  try {
    decodeMultihash(bytes);
  } catch (error) {
    throw new NodeError(`key did not contain valid multihash: ${(error as Error).message}`, { cause: error });
  }
}

/** @throws NodeError when there are no records with such a key */
function kindOf(key: Uint8Array): Kind {
  const [, name = ""] = /^\/([a-z]+)\//.exec(Buffer.from(key.subarray(0, 16)).toString("latin1")) ?? [];
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (kind === undefined) throw new NodeError("invalid record keytype");
  return kind;
}

/** @throws NodeError when there are no records with such a key */
export function requireNamespace(key: Uint8Array): void {
  kindOf(key);
}

/** @throws NodeError with the reference's text unless the value is a valid one of the key */
export async function validate(key: Uint8Array, value: Uint8Array): Promise<void> {
  await kindOf(key).validate(key, value);
}

export const isValid = (key: Uint8Array, value: Uint8Array): Promise<boolean> =>
  validate(key, value).then(
    () => true,
    () => false,
  );

/** Above zero when the first is the better one; both are valid. */
export const compare = (key: Uint8Array, one: Uint8Array, other: Uint8Array): number => kindOf(key).compare(one, other);

const validateOne: ValidateFn = (key, value) => validate(key, value);

const selectBest: SelectFn = (key, records) =>
  records.reduce((best, record, at) => (compare(key, record, records[best] as Uint8Array) > 0 ? at : best), 0);

const each = <T>(value: T): Record<string, T> => Object.fromEntries(Object.keys(kinds).map((name) => [name, value]));

export const validators: Validators = each(validateOne);
export const selectors: Selectors = each(selectBest);
