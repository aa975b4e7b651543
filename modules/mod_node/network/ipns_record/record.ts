/**
 * Encodes and decodes IPNS records, as the IPNS record specification defines: protobuf, which
 * repeats the fields as DAG-CBOR.
 */
import { decodeCbor, type Value } from "../../formats/dag_cbor/value.ts";
import { encodeCbor } from "../../formats/dag_cbor/write.ts";
import { FieldReader, fieldLength, wireBytes, wireVarint } from "../../formats/protobuf/fields.ts";
import { writeVarint } from "../../formats/protobuf/varint.ts";
import { failure } from "../../util/errors.ts";

/** The signed fields of a record. */
export interface RecordFields {
  /** The path as UTF-8. */
  readonly value: Uint8Array;
  /** The expiry: RFC 3339 in UTC, with up to nine digits for the fraction of a second. */
  readonly validity: string;
  readonly sequence: bigint;
  /** How long others may cache the record, in nanoseconds. */
  readonly ttl: bigint;
}

export interface IpnsRecord extends RecordFields {
  /** 0 (EOL): valid until `validity`. No other type exists. */
  readonly validityType: number;
  readonly signatureV1: Uint8Array;
  readonly signatureV2: Uint8Array;
  /** The fields as DAG-CBOR, which version 2 signs; empty in records that only have version 1. */
  readonly data: Uint8Array;
  /** The public key as protobuf; empty if the name contains it. */
  readonly publicKey: Uint8Array;
}

/** Maximum size of a record that implementations accept, in bytes. */
export const MAX_RECORD_SIZE = 10 * 1024;

/** Field numbers of `IpnsEntry` in the specification. */
const FIELD = {
  value: 1,
  signatureV1: 2,
  validityType: 3,
  validity: 4,
  sequence: 5,
  ttl: 6,
  publicKey: 7,
  signatureV2: 8,
  data: 9,
} as const;

const malformed = (cause?: unknown) => failure("RECORD_INVALID", { reason: "record could not be unmarshalled" }, cause);
const none: Uint8Array = new Uint8Array(0);

/** @throws NodeError for bytes that are not a record */
export function decodeRecord(bytes: Uint8Array): IpnsRecord {
  if (bytes.length > MAX_RECORD_SIZE) throw malformed(new Error(`${bytes.length} bytes are too many`));
  const record = {
    value: none,
    signatureV1: none,
    validityType: 0,
    validity: "",
    sequence: 0n,
    ttl: 0n,
    publicKey: none,
    signatureV2: none,
    data: none,
  };
  try {
    const reader = new FieldReader(bytes);
    while (reader.next()) {
      if (reader.field === FIELD.value) record.value = reader.bytes;
      else if (reader.field === FIELD.signatureV1) record.signatureV1 = reader.bytes;
      else if (reader.field === FIELD.validityType) record.validityType = reader.number;
      else if (reader.field === FIELD.validity) record.validity = Buffer.from(reader.bytes).toString();
      else if (reader.field === FIELD.sequence) record.sequence = reader.integer;
      else if (reader.field === FIELD.ttl) record.ttl = reader.integer;
      else if (reader.field === FIELD.publicKey) record.publicKey = reader.bytes;
      else if (reader.field === FIELD.signatureV2) record.signatureV2 = reader.bytes;
      else if (reader.field === FIELD.data) record.data = reader.bytes;
    }
  } catch (error) {
    throw malformed(error);
  }
  return record;
}

/**
 * Reads a record with the fields that its signature of version 2 covers: a record without a
 * signature of version 1 may only contain them as DAG-CBOR.
 *
 * @throws NodeError for bytes that are not a record
 */
export function readRecord(bytes: Uint8Array): IpnsRecord {
  const record = decodeRecord(bytes);
  if (record.data.length === 0 || record.signatureV1.length > 0 || record.value.length > 0) return record;
  return { ...record, ...signedFields(record.data) };
}

/**
 * Returns the fields that version 2 signs, with empty values for missing ones. @throws NodeError
 * for bytes that are not DAG-CBOR
 */
export function signedFields(data: Uint8Array): RecordFields & Pick<IpnsRecord, "validityType"> {
  const fields = cborOf(data);
  const field = (name: string): Value | undefined => (fields instanceof Map ? fields.get(name) : undefined);
  const bytes = (name: string) => {
    const value = field(name);
    return value instanceof Uint8Array ? value : none;
  };
  const number = (name: string) => {
    const value = field(name);
    return typeof value === "bigint" || Number.isInteger(value) ? BigInt(value as bigint | number) : 0n;
  };
  return {
    value: bytes("Value"),
    validityType: Number(number("ValidityType")),
    validity: Buffer.from(bytes("Validity")).toString(),
    sequence: number("Sequence"),
    ttl: number("TTL"),
  };
}

function cborOf(data: Uint8Array): Value {
  try {
    return decodeCbor(data);
  } catch (error) {
    throw malformed(error);
  }
}

/** Numbers of the fields in a record that only has a signature of version 2. */
const FIELDS_V2: ReadonlySet<number> = new Set([FIELD.publicKey, FIELD.signatureV2, FIELD.data]);

/** Encodes a record with only a signature of version 2, whose signed fields are in `data`. */
export const encodeRecordV2 = (record: IpnsRecord): Uint8Array => encodeFields(record, FIELDS_V2);

/**
 * Encodes the fields in the order of their numbers; as in go-ipfs, integers are written even if
 * they are zero.
 */
export const encodeRecord = (record: IpnsRecord): Uint8Array => encodeFields(record);

function encodeFields(record: IpnsRecord, only?: ReadonlySet<number>): Uint8Array {
  const fields: readonly (readonly [field: number, content: Uint8Array | bigint])[] = [
    [FIELD.value, record.value],
    [FIELD.signatureV1, record.signatureV1],
    [FIELD.validityType, BigInt(record.validityType)],
    [FIELD.validity, Buffer.from(record.validity)],
    [FIELD.sequence, record.sequence],
    [FIELD.ttl, record.ttl],
    [FIELD.publicKey, record.publicKey],
    [FIELD.signatureV2, record.signatureV2],
    [FIELD.data, record.data],
  ];
  const parts = fields.flatMap(([field, content]) => {
    if (only?.has(field) === false) return [];
    if (typeof content === "bigint") return [Uint8Array.of(field * 8 + wireVarint), varint(content)];
    if (content.length === 0) return [];
    const head = new Uint8Array(fieldLength(content.length) - content.length);
    head[0] = field * 8 + wireBytes;
    writeVarint(head, 1, content.length);
    return [head, content];
  });
  return Buffer.concat(parts);
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

/** Encodes the fields as DAG-CBOR, in its order of keys. */
export function encodeRecordData({ value, validity, sequence, ttl }: RecordFields): Uint8Array {
  const fields = new Map<string, Value>([
    ["TTL", ttl],
    ["Value", value],
    ["Sequence", sequence],
    ["Validity", Buffer.from(validity)],
    ["ValidityType", 0n],
  ]);
  return encodeCbor(fields);
}

/** Returns the bytes that version 1 signs. */
export const signedByV1 = ({ value, validity }: RecordFields): Uint8Array =>
  Buffer.concat([value, Buffer.from(validity), Buffer.from("EOL")]);

/** Returns the bytes that version 2 signs. */
export const signedByV2 = (data: Uint8Array): Uint8Array => Buffer.concat([Buffer.from("ipns-signature:"), data]);
