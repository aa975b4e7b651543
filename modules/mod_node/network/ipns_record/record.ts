/** Name records on the wire (network section 3.2): a protobuf message, with the same again as CBOR that version 2 signs. */
import { encodeCbor, type Value } from "../../formats/dag_cbor/value.ts";
import { FieldReader, fieldLength } from "../../formats/protobuf/fields.ts";
import { writeVarint } from "../../formats/protobuf/varint.ts";
import { NodeError } from "../../util/errors.ts";

/** What a record says. */
export interface RecordFields {
  /** The path that the name stands for, as bytes. */
  readonly value: Uint8Array;
  /** Until when, as RFC 3339 text in UTC with up to nine digits of a second. */
  readonly validity: string;
  readonly sequence: bigint;
  /** How long others may keep it, in nanoseconds. */
  readonly ttl: bigint;
}

export interface IpnsRecord extends RecordFields {
  /** 0: the record is valid until `validity`; there is no other type. */
  readonly validityType: number;
  readonly signatureV1: Uint8Array;
  readonly signatureV2: Uint8Array;
  /** The claim as CBOR; empty in records of version 1 alone. */
  readonly data: Uint8Array;
  /** Protobuf of the public key; empty where the name tells it. */
  readonly publicKey: Uint8Array;
}

/** Records are refused beyond so many bytes. */
export const MAX_RECORD_SIZE = 10 * 1024;

const malformed = (cause?: unknown) => new NodeError("record could not be unmarshalled", { cause });
const none: Uint8Array = new Uint8Array(0);

/** @throws NodeError when the bytes are no record */
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
      if (reader.field === 1) record.value = reader.bytes;
      else if (reader.field === 2) record.signatureV1 = reader.bytes;
      else if (reader.field === 3) record.validityType = reader.number;
      else if (reader.field === 4) record.validity = Buffer.from(reader.bytes).toString();
      else if (reader.field === 5) record.sequence = reader.integer;
      else if (reader.field === 6) record.ttl = reader.integer;
      else if (reader.field === 7) record.publicKey = reader.bytes;
      else if (reader.field === 8) record.signatureV2 = reader.bytes;
      else if (reader.field === 9) record.data = reader.bytes;
    }
  } catch (error) {
    throw malformed(error);
  }
  return record;
}

/** In the order of the fields' numbers; numbers are written even when they are zero, as the reference does. */
export function encodeRecord(record: IpnsRecord): Uint8Array {
  const fields: readonly (readonly [field: number, content: Uint8Array | bigint])[] = [
    [1, record.value],
    [2, record.signatureV1],
    [3, BigInt(record.validityType)],
    [4, Buffer.from(record.validity)],
    [5, record.sequence],
    [6, record.ttl],
    [7, record.publicKey],
    [8, record.signatureV2],
    [9, record.data],
  ];
  const parts = fields.flatMap(([field, content]) => {
    if (typeof content === "bigint") return [Uint8Array.of(field * 8), varint(content)];
    if (content.length === 0) return [];
    const head = new Uint8Array(fieldLength(content.length) - content.length);
    head[0] = field * 8 + 2;
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

/** What version 2 signs, less its prefix. */
export function encodeRecordData({ value, validity, sequence, ttl }: RecordFields): Uint8Array {
  const claim = new Map<string, Value>([
    ["TTL", ttl],
    ["Value", value],
    ["Sequence", sequence],
    ["Validity", Buffer.from(validity)],
    ["ValidityType", 0n],
  ]);
  return encodeCbor(claim);
}

/** What version 1 signs. */
export const signedByV1 = ({ value, validity }: RecordFields): Uint8Array =>
  Buffer.concat([value, Buffer.from(validity), Buffer.from("EOL")]);

/** What version 2 signs. */
export const signedByV2 = (data: Uint8Array): Uint8Array => Buffer.concat([Buffer.from("ipns-signature:"), data]);
