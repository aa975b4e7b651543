/** Header fields on their way: what an upstream gets of a request, and a client of an answer. */
import type { IncomingMessage } from "node:http";
import { connectionFields } from "../../core/http/index.ts";
import type { HttpRequest, ResponseHeaders } from "../../core/types.ts";
import { type Family, forwardedFields, forwardingFields, hostOf } from "./forwarded.ts";
import { dashed, type Header, type Place, type Settings } from "./settings.ts";

/** What this proxy calls itself (RFC 9110, 7.6.3). */
const PSEUDONYM = "modhost";

/** Hosts of this kind that may stand one before the other. */
const MAX_HOPS = 8;

/** Of a request, what is of one connection, and what is written anew. */
const ofRequest: ReadonlySet<string> = new Set([
  ...connectionFields,
  ...forwardingFields,
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
const ofAnswer: ReadonlySet<string> = new Set([
  ...connectionFields,
  "proxy-authenticate",
  "te",
  "trailer",
  "transfer-encoding",
]);

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

export interface RequestFieldsDeps {
  readonly settings: Settings;
  readonly place: Place;
  readonly family: Family;
  /** Of the app, where upstreams do not see it. */
  readonly prefix: string;
  readonly framing: Framing;
  readonly isUpgrade: boolean;
}

/** As a flat list of names and values, as Node's client takes it. */
export function requestFields(request: HttpRequest, deps: RequestFieldsDeps): string[] {
  const { settings, place, family, prefix, framing, isUpgrade } = deps;
  const { headers } = request;
  const { requestHeaders, requestNames } = settings;
  const named = namedByConnection(headers.connection);
  const via = headers.via === undefined ? "" : `${headers.via}, `;
  const own = [
    ...forwardedFields(request, family, prefix),
    "Via",
    `${via}${request.httpversion} ${PSEUDONYM}`,
    // The one word of this header that is for whoever answers: trailers may follow (RFC 9110, 10.1.4).
    ...(wantsTrailers(headers.te) ? ["TE", "trailers"] : []),
  ];
  const fields = ["Host", hostFor(settings.host, request, place)];
  const cookies: string[] = [];
  for (let at = 0; at < request.raw.rawHeaders.length; at += 2) {
    const name = request.raw.rawHeaders[at] as string;
    const value = request.raw.rawHeaders[at + 1] as string;
    const key = name.toLowerCase();
    if (key.startsWith(":") || named.has(key) || isWithheld(key, requestNames)) continue;
    // HTTP/2 may send them one by one (RFC 9113, 8.2.3).
    if (key === "cookie") cookies.push(value);
    else fields.push(name, value);
  }
  if (cookies.length > 0) fields.push("Cookie", cookies.join("; "));
  for (let at = 0; at < own.length; at += 2) {
    if (!requestHeaders.has((own[at] as string).toLowerCase())) fields.push(own[at] as string, own[at + 1] as string);
  }
  addConfigured(fields, requestHeaders);
  if (isUpgrade) return [...fields, "Connection", "Upgrade", "Upgrade", "websocket"];
  if (wantsTrailers(headers.te)) fields.push("Connection", "keep-alive, TE");
  if (framing.length !== undefined) fields.push("Content-Length", framing.length);
  else if (framing.hasBody) {
    if (headers.trailer !== undefined) fields.push("Trailer", headers.trailer);
    fields.push("Transfer-Encoding", "chunked");
  }
  if (framing.expects) fields.push("Expect", "100-continue");
  return fields;
}

/** Not a client's to say. `configured`: what the option sets or takes away. */
function isWithheld(key: string, configured: ReadonlySet<string>): boolean {
  const seen = dashed(key);
  return ofRequest.has(key) || forwardingFields.has(seen) || configured.has(seen);
}

/** What follows the body of a request, less what is none of a client's to say, wherever it stands. */
export function requestTrailers(raw: readonly string[], { requestNames }: Settings): [string, string][] {
  const trailers: [string, string][] = [];
  for (let at = 0; at < raw.length; at += 2) {
    if (isWithheld((raw[at] as string).toLowerCase(), requestNames)) continue;
    trailers.push([raw[at] as string, raw[at + 1] as string]);
  }
  return trailers;
}

/** A request that has come through here so often goes round in a circle. */
export function isLooping({ headers }: HttpRequest): boolean {
  return headers.via !== undefined && headers.via.split(` ${PSEUDONYM}`).length > MAX_HOPS;
}

function wantsTrailers(te: string | undefined): boolean {
  return te !== undefined && /(?:^|,)\s*trailers\s*(?:,|$)/i.test(te);
}

function hostFor(option: string, request: HttpRequest, { authority }: Place): string {
  if (option === "upstream") return authority;
  return option === "client" ? (hostOf(request) ?? authority) : option;
}

/** Fields that `Connection` says are of this connection alone. */
function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  return new Set(connection?.split(",").map((name) => name.trim().toLowerCase()));
}

function addConfigured(fields: string[], headers: ReadonlyMap<string, Header>): void {
  for (const { name, value } of headers.values()) if (value !== "") fields.push(name, value);
}

/** What goes out in headers: no line break can slip in, nor another control character. */
export const printable = /^[\t\x20-\x7e\x80-\xff]*$/;
const token = /^[\w!#$%&'*+.^`|~-]+$/;

/** Whether a field may follow the body of an answer: none that says how long that is (RFC 9110, 6.5.1). */
export function mayTrail(name: string, value = ""): boolean {
  const key = name.toLowerCase();
  return token.test(name) && printable.test(value) && !ofAnswer.has(key) && key !== "content-length";
}

/**
 * The fields of an answer that go on to the client, as a flat list; undefined when one of them cannot be sent. `location`
 * gives the address for clients of one that is the upstream's own.
 */
export function answerFields(
  incoming: IncomingMessage,
  settings: Settings,
  location: (url: string) => string,
): string[] | undefined {
  const { rawHeaders, headers, statusCode } = incoming;
  const named = namedByConnection(headers.connection);
  const fields: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    const key = name.toLowerCase();
    if (ofAnswer.has(key) || named.has(key) || settings.responseHeaders.has(key)) continue;
    // There is no body to have a length (RFC 9110, 8.6).
    if (key === "content-length" && (statusCode === 204 || statusCode === 205)) continue;
    if (!printable.test(value)) return undefined;
    fields.push(name, key === "location" || key === "content-location" ? location(value) : value);
  }
  addConfigured(fields, settings.responseHeaders);
  return fields;
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
