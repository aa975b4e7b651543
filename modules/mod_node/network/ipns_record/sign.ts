/** Signs IPNS records. */
import type { Key } from "../../storage/keystore/key.ts";
import { signWith } from "../../storage/keystore/signing.ts";
import { inlinesPublicKey } from "./keys.ts";
import {
  encodeRecord,
  encodeRecordData,
  encodeRecordV2,
  type IpnsRecord,
  type RecordFields,
  signedByV1,
  signedByV2,
} from "./record.ts";

const none = new Uint8Array(0);

/**
 * Resolves to a record of the name of `key`, with the signatures of versions 1 and 2, or only that
 * of version 2.
 */
export async function signRecord(
  key: Key,
  fields: RecordFields,
  versions: "both" | "V2" = "both",
): Promise<Uint8Array> {
  const data = encodeRecordData(fields);
  const [signatureV1, signatureV2] = await Promise.all([
    signWith(key.bytes, signedByV1(fields)),
    signWith(key.bytes, signedByV2(data)),
  ]);
  const record: IpnsRecord = {
    ...fields,
    validityType: 0,
    signatureV1,
    signatureV2,
    data,
    publicKey: inlinesPublicKey(key.id) ? none : key.publicKey,
  };
  return versions === "both" ? encodeRecord(record) : encodeRecordV2(record);
}

/**
 * Returns the sequence number of the next record: one more than the last one if the value differs.
 */
export const nextSequence = (last: RecordFields | undefined, value: Uint8Array): bigint => {
  if (last === undefined) return 0n;
  return Buffer.compare(last.value, value) === 0 ? last.sequence : last.sequence + 1n;
};
