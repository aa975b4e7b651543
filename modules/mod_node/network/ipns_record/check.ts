/** Which records of a name are to be believed, and which of two is the better one (network section 3.2). */
import { decodeCbor, member, type Value } from "../../formats/dag_cbor/value.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import { peerIdOf } from "../../storage/keystore/key.ts";
import { isSignedBy } from "../../storage/keystore/signing.ts";
import { NodeError } from "../../util/errors.ts";
import { inlinesPublicKey } from "./keys.ts";
import { decodeRecord, type IpnsRecord, signedByV1, signedByV2 } from "./record.ts";
import { parseTimestamp, timestampAfter } from "./timestamp.ts";

/**
 * The record, when it is one of that name and still valid. Records of version 1 alone are taken, as the reference takes
 * them.
 *
 * @throws NodeError with the reference's texts
 */
export async function checkRecord(name: PeerId, bytes: Uint8Array, now = timestampAfter(0)): Promise<IpnsRecord> {
  const record = decodeRecord(bytes);
  const key = publicKeyFor(name, record);
  const [message, signature] =
    record.signatureV2.length > 0
      ? [signedByV2(record.data), record.signatureV2]
      : [signedByV1(record), record.signatureV1];
  if (!(await isSignedBy(key, message, signature))) throw new NodeError("record signature verification failed");
  if (record.signatureV2.length > 0) requireAgreement(record);
  const end = parseTimestamp(record.validity);
  if (record.validityType !== 0 || end === undefined) throw new NodeError("unrecognized validity type");
  if (end < now) throw new NodeError("expired record");
  return record;
}

/** Whether `checkRecord` takes it. */
export const isValidRecord = (name: PeerId, bytes: Uint8Array): Promise<boolean> =>
  checkRecord(name, bytes).then(
    () => true,
    () => false,
  );

function publicKeyFor(name: PeerId, { publicKey }: IpnsRecord): Uint8Array {
  if (publicKey.length > 0) {
    if (!peerIdOf(publicKey).equals(name)) {
      throw new NodeError("public key in record did not match expected pubkey");
    }
    return publicKey;
  }
  if (!inlinesPublicKey(name)) throw new NodeError("public key not found in peer store");
  return name.toMultihash().digest;
}

/** What is signed and what is read are the same. */
function requireAgreement(record: IpnsRecord): void {
  const claim = readClaim(record.data);
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
    if (!agrees(claimed(claim, name))) {
      throw new NodeError(`field ${JSON.stringify(name)} did not match between protobuf and CBOR`);
    }
  }
}

function readClaim(data: Uint8Array): Value {
  try {
    return decodeCbor(data);
  } catch (error) {
    throw new NodeError("record could not be unmarshalled", { cause: error });
  }
}

function claimed(claim: Value, name: string): Value {
  if (!(claim instanceof Map) || !claim.has(name)) {
    throw new NodeError(`field ${JSON.stringify(name)} did not match between protobuf and CBOR`);
  }
  return member(claim, name);
}

/**
 * Above zero when the first record is the better one, below when the second is: signed by version 2, then the higher
 * sequence, then the later end, then the larger bytes. Both are valid records of one name.
 */
export function compareRecords(one: Uint8Array, other: Uint8Array): number {
  const [a, b] = [decodeRecord(one), decodeRecord(other)];
  const signed = Number(a.signatureV2.length > 0) - Number(b.signatureV2.length > 0);
  if (signed !== 0) return signed;
  if (a.sequence !== b.sequence) return a.sequence > b.sequence ? 1 : -1;
  const [endA = 0n, endB = 0n] = [parseTimestamp(a.validity), parseTimestamp(b.validity)];
  if (endA !== endB) return endA > endB ? 1 : -1;
  return Buffer.compare(one, other);
}
