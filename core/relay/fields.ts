/** The header fields of forwarded messages, and the framing of forwarded request bodies. */
import type { IncomingMessage } from "node:http";
import type { HttpRequest, ResponseHeaders } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { isFieldValue, isToken } from "../util/header_fields.ts";
import { isHttp2 } from "../util/http2.ts";
import type { NodeRequest } from "../util/node_messages.ts";

/**
 * Fields that belong to one connection (RFC 9110, 7.6.1), besides those that `Connection` lists. In
 * lower case.
 */
export const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "upgrade",
  "expect",
]);

/** The name of this server in `Via` (RFC 9110, 7.6.3). */
const PSEUDONYM = "modhost";

/** Maximum number of servers of this kind in a chain. */
const MAX_HOPS = 8;

/** Request fields that belong to one connection, or that are written again for each. */
const requestHopFields: ReadonlySet<string> = new Set([
  ...connectionFields,
  "content-length",
  "host",
  "http2-settings",
  // Not standardized. CGI programs take this field for the proxy that they should use
  // (CVE-2016-5385).
  "proxy",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "via",
]);

/** Response fields that belong to one connection, or that the host writes. */
const responseHopFields: ReadonlySet<string> = new Set([
  ...connectionFields,
  "proxy-authenticate",
  "te",
  "trailer",
  "transfer-encoding",
]);

/** The forms of a field's name that are compared. */
interface FieldName {
  readonly lower: string;
  readonly folded: string;
  /** The key in a table of headers: `content_type`. */
  readonly key: string;
}

const known = new Map<string, FieldName>();
const MAX_KNOWN_NAMES = 1024;
const plainName = /^[\da-z-]*$/;

/**
 * Returns the forms of a name. It remembers them, because messages repeat few names and the forms
 * cost more than the rest.
 */
export function fieldName(name: string): FieldName {
  let forms = known.get(name);
  if (forms === undefined) {
    const lower = name.toLowerCase();
    const folded = plainName.test(lower) ? lower : lower.replace(/[^\da-z]/g, "-");
    forms = { lower, folded, key: lower.replaceAll("-", "_") };
    if (known.size < MAX_KNOWN_NAMES && name.length <= 64) known.set(name, forms);
  }
  return forms;
}

/**
 * Returns the name in lower case, with a dash for every character except letters and digits.
 * Servers that pass headers to programs as variables (CGI, WSGI, PHP) treat `X_Real_IP` as
 * `X-Real-IP`, so a client that may not send one of these names may not send the other.
 */
export const foldedName = (name: string): string => fieldName(name).folded;

/** Returns the value of `Via` with this server in it. */
export function viaOf(request: HttpRequest): string {
  const via = request.header("via");
  return `${via === undefined ? "" : `${via}, `}${request.httpversion} ${PSEUDONYM}`;
}

/**
 * Whether a request has come through this server so often that it must be going round in a circle.
 */
export function isLooping(request: HttpRequest): boolean {
  const via = request.header("via");
  return via !== undefined && via.split(` ${PSEUDONYM}`).length > MAX_HOPS;
}

/** How the body of a forwarded request is framed. */
export interface Framing {
  readonly hasBody: boolean;
  /** The value of Content-Length; undefined for a body of unknown length. */
  readonly length: string | undefined;
  /** Whether the client waits to be invited to send the body. */
  readonly expects: boolean;
}

/** Whether a request has a body, by its framing. */
export function hasBody(request: NodeRequest): boolean {
  if (isHttp2(request)) return !request.stream.endAfterHeaders;
  const { headers } = request;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/**
 * Reads the exact names only, as the parser of the body does: `Content_Length` announces no body.
 */
export function framingOf(request: HttpRequest): Framing {
  const { raw } = request;
  const coding = request.header("transfer-encoding");
  // With a coding there is no length: a parser takes no request with both.
  const length = coding === undefined ? request.header("content-length") : undefined;
  const known = length !== undefined && /^\d+$/.test(length) ? length : undefined;
  const isFollowed = hasBody(raw);
  const expects = isFollowed && request.header("expect")?.toLowerCase() === "100-continue";
  return { hasBody: isFollowed, length: isFollowed || Number(known) === 0 ? known : undefined, expects };
}

/**
 * Yields the body as it arrives. Throws before it yields more bytes than announced, and at the end
 * when there were fewer. The outgoing connection must then be closed: the upstream would read the
 * next request on it as the rest of the body.
 * @throws {ModhostError} BODY_TOO_LARGE before it yields more bytes than `limit`
 */
export async function* announcedBody(
  body: AsyncIterable<Buffer>,
  { hasBody, length }: Framing,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer> {
  const announced = hasBody ? (length === undefined ? undefined : Number(length)) : 0;
  let sent = 0;
  for await (const piece of body) {
    sent += piece.length;
    if (sent > limit) throw new ModhostError("BODY_TOO_LARGE", { limit });
    if (announced !== undefined && sent > announced) throw new Error(`The body has more than ${announced} bytes`);
    yield piece;
  }
  if (announced !== undefined && sent < announced) throw new Error(`The body has ${sent} bytes, not ${announced}`);
}

/**
 * Returns the fields of a request to forward, as a flat list. `isWithheld` gets the folded name,
 * and whether the client sent another spelling of it. No spelling of a hop-by-hop field is
 * forwarded.
 */
export function passedFields(
  request: HttpRequest,
  isWithheld: (folded: string, isOther: boolean) => boolean,
): string[] {
  const { rawHeaders } = request.raw;
  const named = namedByConnection(request.header("connection"));
  const fields: string[] = [];
  const cookies: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    const { lower, folded } = fieldName(name);
    if (name.startsWith(":") || named.has(folded) || requestHopFields.has(folded)) continue;
    if (isWithheld(folded, lower !== folded)) continue;
    // HTTP/2 may send each cookie in a field of its own (RFC 9113, 8.2.3).
    if (folded === "cookie") cookies.push(value);
    else fields.push(name, value);
  }
  if (cookies.length > 0) fields.push("Cookie", cookies.join("; "));
  return fields;
}

/**
 * Returns the fields of a response that another part of this server has sent, as a flat list: all
 * but those of the connection between the two, and those that `withheld` names in lower case.
 */
export function innerResponseFields(
  rawHeaders: readonly string[],
  withheld: ReadonlySet<string> = new Set(),
): string[] {
  const fields: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const { lower, folded } = fieldName(rawHeaders[at] as string);
    if (connectionFields.has(lower) || lower === "transfer-encoding" || withheld.has(folded)) continue;
    // Another spelling would become Content-Length in a table of headers, and contradict the
    // framing of the body.
    if (folded === "content-length" && lower !== folded) continue;
    fields.push(rawHeaders[at] as string, rawHeaders[at + 1] as string);
  }
  return fields;
}

export interface ResponseFieldsOptions {
  /** Folded names of fields that are not forwarded. */
  readonly withheld?: { has(folded: string): boolean };
  /** Returns the address for clients of an address of the upstream. */
  readonly location?: (url: string) => string;
}

/**
 * Returns the fields of a response to forward, as a flat list; undefined if one of them cannot be
 * sent.
 */
export function responseFieldsOf(
  { rawHeaders, headers, statusCode }: IncomingMessage,
  { withheld, location = (url) => url }: ResponseFieldsOptions = {},
): string[] | undefined {
  // Node.js removes only the chunked coding. The name of any other coding would be lost while its
  // bytes stay in the body.
  if (!plainCodings.test(headers["transfer-encoding"] ?? "")) return undefined;
  const named = namedByConnection(headers.connection);
  const fields: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    const { lower, folded } = fieldName(name);
    // The field tells which protocol the client has to request (RFC 9110, 15.5.22). HTTP/2 has no
    // such field.
    if (statusCode === 426 && lower === "upgrade" && isFieldValue(value)) {
      fields.push(name, value, "Connection", "Upgrade");
      continue;
    }
    if (responseHopFields.has(folded) || named.has(folded) || withheld?.has(folded) === true) continue;
    // These responses have no body (RFC 9110, 8.6). Another spelling of the name would announce a
    // wrong length.
    if (folded === "content-length" && (isBodiless(statusCode) || lower !== folded)) continue;
    if (!isFieldValue(value)) return undefined;
    fields.push(name, folded === "location" || folded === "content-location" ? location(value) : value);
  }
  return fields;
}

/** Matches transfer codings that Node.js has removed from the body. */
const plainCodings = /^(?:chunked|identity)?$/i;

const isBodiless = (status = 0): boolean => status < 200 || status === 204 || status === 205;

/** Returns the folded names of the fields that `Connection` lists as hop-by-hop. */
function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  return new Set(connection?.split(",").map((name) => foldedName(name.trim())));
}

/**
 * Fields that a recipient needs before the body: framing, form, credentials and conditions. As
 * trailers they would only attack servers that merge trailers into the head after other servers
 * have checked that head.
 */
const headFields: ReadonlySet<string> = new Set([
  ...requestHopFields,
  ...responseHopFields,
  ...["authorization", "cookie", "set-cookie", "www-authenticate"],
  ...["cache-control", "content-encoding", "content-range", "content-type", "location", "range", "vary"],
  ...["if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"],
]);

/** Whether a field may follow the body of a message (RFC 9110, 6.5.1). */
export function mayTrail(name: string, value = ""): boolean {
  return isToken(name) && isFieldValue(value) && !headFields.has(foldedName(name));
}

/** Converts a flat list to a table, with a list for a field of several lines. */
export function headerTable(fields: readonly string[]): ResponseHeaders {
  const table: Record<string, string | string[]> = {};
  for (let at = 0; at < fields.length; at += 2) {
    const { key } = fieldName(fields[at] as string);
    const value = fields[at + 1] as string;
    // Assigning `__proto__` would replace the prototype of the table.
    if (key === "__proto__") continue;
    const before = Object.hasOwn(table, key) ? table[key] : undefined;
    if (before === undefined) table[key] = value;
    else if (typeof before === "string") table[key] = [before, value];
    else before.push(value);
  }
  return table;
}
