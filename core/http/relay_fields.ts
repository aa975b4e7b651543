/** Header fields on their way from one connection to another, and how the body goes with them. */
import type { IncomingMessage } from "node:http";
import type { HttpRequest, ResponseHeaders } from "../types.ts";
import { connectionFields } from "./relay.ts";

/** What this server calls itself where it hands messages on (RFC 9110, 7.6.3). */
const PSEUDONYM = "modhost";

/** Servers of this kind that may stand one before the other. */
const MAX_HOPS = 8;

/** Of a request, what is of one connection, and what is written anew. */
export const requestHopFields: ReadonlySet<string> = new Set([
  ...connectionFields,
  "content-length",
  "host",
  "http2-settings",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "via",
]);

/** Of an answer, what is of one connection, and what the host writes. */
const answerHopFields: ReadonlySet<string> = new Set([
  ...connectionFields,
  "proxy-authenticate",
  "te",
  "trailer",
  "transfer-encoding",
]);

/** The value of `Via` with this server in it. */
export function viaOf({ headers: { via }, httpversion }: HttpRequest): string {
  return `${via === undefined ? "" : `${via}, `}${httpversion} ${PSEUDONYM}`;
}

/** A request that has come through here so often goes round in a circle. */
export function isLooping({ headers: { via } }: HttpRequest): boolean {
  return via !== undefined && via.split(` ${PSEUDONYM}`).length > MAX_HOPS;
}

/** How the body of a request goes out. */
export interface Framing {
  readonly hasBody: boolean;
  /** Of a body of known length. */
  readonly length: string | undefined;
  /** The client waits to be asked for it. */
  readonly expects: boolean;
}

export function framingOf({ raw, headers, httpversion }: HttpRequest): Framing {
  const { content_length: length, transfer_encoding: coding } = headers;
  const isOpen = httpversion === "2.0" && "stream" in raw && !raw.stream.endAfterHeaders;
  const hasBody = coding !== undefined || Number(length ?? 0) > 0 || isOpen;
  // With a coding there is no length: a parser takes no request with both.
  const known = coding === undefined ? length : undefined;
  return { hasBody, length: known, expects: hasBody && headers.expect?.toLowerCase() === "100-continue" };
}

/** The fields of a request that `isWithheld` (by the name in lower case) lets go on, as a flat list. */
export function passedFields({ raw, headers }: HttpRequest, isWithheld: (key: string) => boolean): string[] {
  const named = namedByConnection(headers.connection);
  const fields: string[] = [];
  const cookies: string[] = [];
  for (let at = 0; at < raw.rawHeaders.length; at += 2) {
    const name = raw.rawHeaders[at] as string;
    const value = raw.rawHeaders[at + 1] as string;
    const key = name.toLowerCase();
    if (key.startsWith(":") || named.has(key) || requestHopFields.has(key) || isWithheld(key)) continue;
    // HTTP/2 may send them one by one (RFC 9113, 8.2.3).
    if (key === "cookie") cookies.push(value);
    else fields.push(name, value);
  }
  if (cookies.length > 0) fields.push("Cookie", cookies.join("; "));
  return fields;
}

export interface AnswerFieldsOptions {
  /** Names in lower case that do not go on. */
  readonly withheld?: { has(key: string): boolean };
  /** The address for clients of one that is the server's own. */
  readonly location?: (url: string) => string;
}

/** The fields of an answer that go on to the client, as a flat list; undefined when one of them cannot be sent. */
export function answerFieldsOf(
  { rawHeaders, headers, statusCode }: IncomingMessage,
  { withheld, location = (url) => url }: AnswerFieldsOptions = {},
): string[] | undefined {
  const named = namedByConnection(headers.connection);
  const fields: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    const key = name.toLowerCase();
    if (answerHopFields.has(key) || named.has(key) || withheld?.has(key) === true) continue;
    // There is no body to have a length (RFC 9110, 8.6).
    if (key === "content-length" && (statusCode === 204 || statusCode === 205)) continue;
    if (!printable.test(value)) return undefined;
    fields.push(name, key === "location" || key === "content-location" ? location(value) : value);
  }
  return fields;
}

/** Fields that `Connection` says are of this connection alone. */
function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  return new Set(connection?.split(",").map((name) => name.trim().toLowerCase()));
}

/** What goes out in headers: no line break can slip in, nor another control character. */
export const printable = /^[\t\x20-\x7e\x80-\xff]*$/;
const token = /^[\w!#$%&'*+.^`|~-]+$/;

/** Whether a field may follow the body of an answer: none that says how long that is (RFC 9110, 6.5.1). */
export function mayTrail(name: string, value = ""): boolean {
  const key = name.toLowerCase();
  return token.test(name) && printable.test(value) && !answerHopFields.has(key) && key !== "content-length";
}

/** As a table, with a list for a header of several lines. */
export function headerTable(fields: readonly string[]): ResponseHeaders {
  const lists = new Map<string, string[]>();
  for (let at = 0; at < fields.length; at += 2) {
    const key = (fields[at] as string).toLowerCase().replaceAll("-", "_");
    const values = lists.get(key);
    if (values === undefined) lists.set(key, [fields[at + 1] as string]);
    else values.push(fields[at + 1] as string);
  }
  const table: ResponseHeaders = {};
  for (const [key, values] of lists) table[key] = values.length === 1 ? values[0] : values;
  return table;
}
