/** Inspects the contents of an IPNS record, for `name inspect`. */
import type { PeerId } from "../../formats/peer_id.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { checkRecord } from "./check.ts";
import { decodeRecord, signedFields } from "./record.ts";

export interface RecordInspection {
  /** The signed fields. */
  readonly entry: {
    readonly value: string;
    /** 0 means that the record is valid until a time. */
    readonly validityType: number;
    readonly validity: string;
    readonly sequence: bigint;
    /** How long others may cache the record, in nanoseconds. */
    readonly ttl: bigint;
  };
  /** Size of the record in bytes. */
  readonly size: number;
  /** Versions of the signatures that the record has. */
  readonly signatures: "V1+V2" | "V2";
}

/** @throws NodeError with Kubo's text for bytes that are not a record */
export function inspectRecord(bytes: Uint8Array): RecordInspection {
  const record = decoded(bytes);
  if (record.data.length === 0) throw malformed("record is missing the dag-cbor data field");
  const fields = signedFields(record.data);
  return {
    entry: { ...fields, value: Buffer.from(fields.value).toString() },
    size: bytes.length,
    signatures: record.signatureV1.length > 0 ? "V1+V2" : "V2",
  };
}

function decoded(bytes: Uint8Array) {
  try {
    return decodeRecord(bytes);
  } catch {
    throw malformed("proto:\u00a0cannot parse invalid wire-format data");
  }
}

const malformed = (why: string) => failure("RECORD_INVALID", { reason: `record is malformed\n${why}` });

/**
 * Resolves to the reason why a record is not valid for a name, in Kubo's words; to undefined if it
 * is valid.
 */
export async function recordFault(name: PeerId, bytes: Uint8Array): Promise<string | undefined> {
  try {
    await checkRecord(name, bytes);
    return undefined;
  } catch (error) {
    if (!NodeError.is(error)) throw error;
    return error.code === "RECORD_EXPIRED" ? "record is expired" : "signature verification failed";
  }
}
