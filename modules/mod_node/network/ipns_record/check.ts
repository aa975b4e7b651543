/** Validates and compares IPNS records, as the IPNS record specification defines. */
import { decodeCbor, member, type Value } from "../../formats/dag_cbor/value.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import { peerIdOf } from "../../storage/keystore/key.ts";
import { isSignedBy } from "../../storage/keystore/signing.ts";
import { failure } from "../../util/errors.ts";
import { inlinesPublicKey } from "./keys.ts";
import { type IpnsRecord, readRecord, signedByV1, signedByV2 } from "./record.ts";
import { parseTimestamp, timestampAfter } from "./timestamp.ts";

/**
 * Resolves to the record if it is signed for the name and has not expired. As in go-ipfs 0.9, a
 * record that only has the signature of version 1 is valid.
 *
 * @throws NodeError with go-ipfs's texts
 */
export async function checkRecord(name: PeerId, bytes: Uint8Array, now = timestampAfter(0)): Promise<IpnsRecord> {
  const record = readRecord(bytes);
  const key = publicKeyFor(name, record);
  const [message, signature] =
    record.signatureV2.length > 0
      ? [signedByV2(record.data), record.signatureV2]
      : [signedByV1(record), record.signatureV1];
  if (!(await isSignedBy(key, message, signature)))
    throw failure("RECORD_INVALID", { reason: "record signature verification failed" });
  if (record.signatureV2.length > 0) requireAgreement(record);
  const end = parseTimestamp(record.validity);
  if (record.validityType !== 0 || end === undefined)
    throw failure("RECORD_INVALID", { reason: "unrecognized validity type" });
  if (end < now) throw failure("RECORD_EXPIRED");
  return record;
}

/** Resolves to whether `checkRecord` accepts the record. */
export const isValidRecord = (name: PeerId, bytes: Uint8Array): Promise<boolean> =>
  checkRecord(name, bytes).then(
    () => true,
    () => false,
  );

function publicKeyFor(name: PeerId, { publicKey }: IpnsRecord): Uint8Array {
  if (publicKey.length > 0) {
    if (!peerIdOf(publicKey).equals(name)) {
      throw failure("RECORD_INVALID", { reason: "public key in record did not match expected pubkey" });
    }
    return publicKey;
  }
  if (!inlinesPublicKey(name)) throw failure("RECORD_INVALID", { reason: "public key not found in peer store" });
  return name.toMultihash().digest;
}

/** Requires that the fields signed by version 2 equal the fields outside the signed data. */
function requireAgreement(record: IpnsRecord): void {
  const data = decodeData(record.data);
  const isText = (value: Value, bytes: Uint8Array) => value instanceof Uint8Array && Buffer.compare(value, bytes) === 0;
  const isNumber = (value: Value, number: bigint) =>
    (typeof value === "bigint" || typeof value === "number") && BigInt(value) === number;
  const fields: readonly (readonly [name: string, agrees: (value: Value) => boolean])[] = [
    ["Value", (value) => isText(value, record.value)],
    ["Validity", (value) => isText(value, Buffer.from(record.validity))],
    ["ValidityType", (value) => isNumber(value, BigInt(record.validityType))],
    ["Sequence", (value) => isNumber(value, record.sequence)],
    ["TTL", (value) => isNumber(value, record.ttl)],
  ];
  for (const [name, agrees] of fields) {
    if (!agrees(fieldOf(data, name))) {
      throw failure("RECORD_INVALID", {
        reason: `field ${JSON.stringify(name)} did not match between protobuf and CBOR`,
      });
    }
  }
}

function decodeData(data: Uint8Array): Value {
  try {
    return decodeCbor(data);
  } catch (error) {
    throw failure("RECORD_INVALID", { reason: "record could not be unmarshalled" }, error);
  }
}

function fieldOf(data: Value, name: string): Value {
  if (!(data instanceof Map) || !data.has(name)) {
    throw failure("RECORD_INVALID", {
      reason: `field ${JSON.stringify(name)} did not match between protobuf and CBOR`,
    });
  }
  return member(data, name);
}

/**
 * Returns a positive number if the first record is better, a negative one if the second is. A
 * signature of version 2 is better than none, then the higher sequence number, then the later
 * expiry, then the larger bytes. Both must be valid records of the same name.
 */
export function compareRecords(one: Uint8Array, other: Uint8Array): number {
  const a = readRecord(one);
  const b = readRecord(other);
  const signed = Number(a.signatureV2.length > 0) - Number(b.signatureV2.length > 0);
  if (signed !== 0) return signed;
  if (a.sequence !== b.sequence) return a.sequence > b.sequence ? 1 : -1;
  const [endA = 0n, endB = 0n] = [parseTimestamp(a.validity), parseTimestamp(b.validity)];
  if (endA !== endB) return endA > endB ? 1 : -1;
  return Buffer.compare(one, other);
}
