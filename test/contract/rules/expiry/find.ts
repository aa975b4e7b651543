/**
 * Finds data that expires in the files of the tests: signed names, certificates, tokens, and dates.
 */
import { X509Certificate } from "node:crypto";
import { Record as KadRecord } from "@libp2p/kad-dht";
import { base64url } from "multiformats/bases/base64";
import { readRecord } from "#node/network/ipns_record/record.ts";
import { parseTimestamp } from "#node/network/ipns_record/timestamp.ts";

export interface Expiry {
  readonly kind: "name" | "certificate" | "token" | "date";
  /** Milliseconds since 1970. */
  readonly until: number;
}

/**
 * Matches encoded text that is long enough for a signed name or a certificate, with line breaks and
 * quotes inside it.
 */
const encoded = /[A-Za-z0-9+/_-]{80,}={0,2}/g;
const pem = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s\\n]+-----END CERTIFICATE-----/g;
const token = /eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]*/g;
const isoDate = /\b(20\d\d-[01]\d-[0-3]\d)(T[0-2]\d:[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d))?\b/g;
const httpDate =
  /\b[0-3]?\d[ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*[ -]20\d\d(?: \d\d:\d\d:\d\d)?/g;
const calledDate = /\b(?:UTC|Date)\((20\d\d), ?(\d+)(?:, ?(\d+))?/g;

/** Returns everything in a text that expires, including encoded data. */
export function* expiriesIn(text: string): Generator<Expiry> {
  for (const [found] of text.matchAll(pem)) yield* certificate(found.replaceAll("\\n", "\n"));
  for (const [, payload = ""] of text.matchAll(token)) yield* claims(payload);
  for (const [found] of text.matchAll(encoded)) {
    for (const form of [found, found.slice(1)]) {
      for (const coding of ["base64", "hex"] as const) yield* expiriesOf(Buffer.from(form, coding));
    }
  }
  for (const [found, day, time] of text.matchAll(isoDate))
    yield* date(Date.parse(time === undefined ? (day as string) : found));
  for (const [found] of text.matchAll(httpDate))
    yield* date(Date.parse(`${found.replaceAll("-", " ")}${found.includes(":") ? " GMT" : ""}`));
  for (const [, year, month, day = "1"] of text.matchAll(calledDate))
    yield* date(Date.UTC(Number(year), Number(month), Number(day)));
}

/** Recognizes bytes as a signed name, also inside a DHT record, or as a certificate. */
export function* expiriesOf(bytes: Uint8Array): Generator<Expiry> {
  if (bytes.length < 60) return;
  yield* certificate(bytes);
  const names = [...name(bytes)];
  yield* names;
  if (names.length === 0) yield* name(valueIn(bytes));
}

/** Returns the value of a DHT record; empty for anything else. */
function valueIn(bytes: Uint8Array): Uint8Array {
  try {
    return KadRecord.deserialize(bytes).value;
  } catch {
    return new Uint8Array();
  }
}

function* certificate(found: string | Uint8Array): Generator<Expiry> {
  if (typeof found !== "string" && found[0] !== 0x30) return;
  try {
    yield { kind: "certificate", until: Date.parse(new X509Certificate(found).validTo) };
  } catch {
    // These bytes are not a certificate.
  }
}

function* claims(payload: string): Generator<Expiry> {
  try {
    const { exp } = JSON.parse(Buffer.from(base64url.baseDecode(payload)).toString());
    if (typeof exp === "number") yield { kind: "token", until: exp * 1000 };
  } catch {
    // The text is not the payload of a token.
  }
}

function* name(bytes: Uint8Array): Generator<Expiry> {
  try {
    const { validity, signatureV1, signatureV2 } = readRecord(bytes);
    const until = parseTimestamp(validity);
    if (until === undefined || signatureV1.length + signatureV2.length === 0) return;
    yield { kind: "name", until: Number(until / 1_000_000n) };
  } catch {
    // These bytes are not a record of a name.
  }
}

function* date(until: number): Generator<Expiry> {
  if (!Number.isNaN(until)) yield { kind: "date", until };
}
