/** Making name records (network section 3.2). */
import type { Key } from "../../storage/keystore/key.ts";
import { signWith } from "../../storage/keystore/signing.ts";
import { inlinesPublicKey } from "./keys.ts";
import {
  encodeRecord,
  encodeRecordData,
  type IpnsRecord,
  type RecordFields,
  signedByV1,
  signedByV2,
} from "./record.ts";

const none = new Uint8Array(0);

/** A record of the name that `key` signs, for readers of version 1 and of version 2. */
export async function signRecord(key: Key, claim: RecordFields): Promise<Uint8Array> {
  const data = encodeRecordData(claim);
  const [signatureV1, signatureV2] = await Promise.all([
    signWith(key.bytes, signedByV1(claim)),
    signWith(key.bytes, signedByV2(data)),
  ]);
  const record: IpnsRecord = {
    ...claim,
    validityType: 0,
    signatureV1,
    signatureV2,
    data,
    publicKey: inlinesPublicKey(key.id) ? none : key.publicKey,
  };
  return encodeRecord(record);
}

/** Of the next record: one more when it says something else than the last one. */
export const nextSequence = (last: RecordFields | undefined, value: Uint8Array): bigint => {
  if (last === undefined) return 0n;
  return Buffer.compare(last.value, value) === 0 ? last.sequence : last.sequence + 1n;
};
