/**
 * The header fields of forwarded messages: of requests to upstreams, and of their responses to
 * clients.
 */
import type { IncomingMessage } from "node:http";
import {
  type Framing,
  foldedName,
  mayTrail,
  passedFields,
  responseFieldsOf,
  trailersOf,
  viaOf,
} from "../../core/http/index.ts";
import type { HttpRequest } from "../../core/types.ts";
import { type Family, forwardedFields, forwardingFields, hostOf } from "./forwarded.ts";
import type { Header, Settings, UpstreamAddress } from "./settings.ts";

export interface RequestFieldsDeps {
  readonly settings: Settings;
  readonly address: UpstreamAddress;
  readonly family: Family;
  /** The path of the app, if upstreams do not see it. */
  readonly prefix: string;
  readonly framing: Framing;
  readonly isUpgrade: boolean;
}

/** Returns a flat list of names and values, as Node's client takes it. */
export function requestFields(request: HttpRequest, deps: RequestFieldsDeps): string[] {
  const { settings, address, family, prefix, framing, isUpgrade } = deps;
  const { requestHeaders } = settings;
  const takesTrailers = wantsTrailers(request.header("te"));
  const own = [
    ...forwardedFields(request, family, prefix),
    "Via",
    viaOf(request),
    // Tells the upstream that it may send trailers (RFC 9110, 10.1.4). All other words of TE
    // concern a single connection, so they are not forwarded.
    ...(takesTrailers ? ["TE", "trailers"] : []),
  ];
  const counts = countsHops(request);
  const passed = passedFields(
    request,
    (folded, isOther) =>
      isWithheld(folded, isOther || !request.from_proxy, requestHeaders) || (counts && folded === "max-forwards"),
  );
  const fields = ["Host", hostFor(settings.host, request, address), ...passed];
  for (let at = 0; at < own.length; at += 2) {
    if (!requestHeaders.has(foldedName(own[at] as string))) fields.push(own[at] as string, own[at + 1] as string);
  }
  const hops = hopsLeft(request);
  if (hops !== undefined) fields.push("Max-Forwards", String(hops - 1));
  addConfigured(fields, requestHeaders);
  if (isUpgrade) return [...fields, "Connection", "Upgrade", "Upgrade", "websocket"];
  if (takesTrailers) fields.push("Connection", "keep-alive, TE");
  if (framing.length !== undefined) fields.push("Content-Length", framing.length);
  else if (framing.hasBody) {
    const trailer = request.header("trailer");
    if (trailer !== undefined) fields.push("Trailer", trailer);
    fields.push("Transfer-Encoding", "chunked");
  }
  if (framing.expects) fields.push("Expect", "100-continue");
  return fields;
}

/**
 * Whether a field is not forwarded. `isOfClient`: no trusted proxy sent it. `configured`: the
 * headers that `request_headers` sets or removes.
 */
function isWithheld(folded: string, isOfClient: boolean, configured: Settings["requestHeaders"]): boolean {
  if (forwardingFields.has(folded) || configured.has(folded)) return true;
  // Programs also trust fields of this family that the proxy does not write, such as
  // X-Forwarded-Ssl.
  return isOfClient && folded.startsWith("x-forwarded-");
}

/** Returns the trailers of a request to forward, without fields that a client may not send. */
export function requestTrailers(request: HttpRequest, { requestHeaders }: Settings): [string, string][] {
  return trailersOf(request.raw).filter(
    ([name, value]) => mayTrail(name, value) && !isWithheld(foldedName(name), true, requestHeaders),
  );
}

/**
 * Returns the number of servers that may still forward an OPTIONS or TRACE (RFC 9110, 7.6.2);
 * undefined for any number.
 */
export function hopsLeft(request: HttpRequest): number | undefined {
  const value = countsHops(request) ? request.header("max-forwards") : undefined;
  return value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}

const countsHops = ({ method }: HttpRequest): boolean => method === "OPTIONS" || method === "TRACE";

function wantsTrailers(te: string | undefined): boolean {
  return te !== undefined && /(?:^|,)\s*trailers\s*(?:,|$)/i.test(te);
}

function hostFor(option: string, request: HttpRequest, { authority }: UpstreamAddress): string {
  if (option === "upstream") return authority;
  return option === "client" ? (hostOf(request) ?? authority) : option;
}

function addConfigured(fields: string[], headers: ReadonlyMap<string, Header>): void {
  for (const { name, value } of headers.values()) if (value !== "") fields.push(name, value);
}

/**
 * Returns the fields of a response to the client, as a flat list; undefined if one of them cannot
 * be sent. `location` returns the address for clients of an address of the upstream.
 */
export function responseFields(
  incoming: IncomingMessage,
  settings: Settings,
  location: (url: string) => string,
): string[] | undefined {
  const fields = responseFieldsOf(incoming, { withheld: settings.responseHeaders, location });
  if (fields !== undefined) addConfigured(fields, settings.responseHeaders);
  return fields;
}
