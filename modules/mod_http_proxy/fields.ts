/** Header fields on their way: what an upstream gets of a request, and a client of an answer. */
import type { IncomingMessage } from "node:http";
import { answerFieldsOf, type Framing, passedFields, requestHopFields, viaOf } from "../../core/http/index.ts";
import type { HttpRequest } from "../../core/types.ts";
import { type Family, forwardedFields, forwardingFields, hostOf } from "./forwarded.ts";
import { dashed, type Header, type Settings, type UpstreamAddress } from "./settings.ts";

export interface RequestFieldsDeps {
  readonly settings: Settings;
  readonly address: UpstreamAddress;
  readonly family: Family;
  /** Of the app, where upstreams do not see it. */
  readonly prefix: string;
  readonly framing: Framing;
  readonly isUpgrade: boolean;
}

/** As a flat list of names and values, as Node's client takes it. */
export function requestFields(request: HttpRequest, deps: RequestFieldsDeps): string[] {
  const { settings, address, family, prefix, framing, isUpgrade } = deps;
  const { headers } = request;
  const { requestHeaders, requestNames } = settings;
  const own = [
    ...forwardedFields(request, family, prefix),
    "Via",
    viaOf(request),
    // The one word of this header that is for whoever answers: trailers may follow (RFC 9110, 10.1.4).
    ...(wantsTrailers(headers.te) ? ["TE", "trailers"] : []),
  ];
  const passed = passedFields(request, (key) => isWithheld(key, requestNames));
  const fields = ["Host", hostFor(settings.host, request, address), ...passed];
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
  return forwardingFields.has(seen) || configured.has(seen);
}

/** What follows the body of a request, less what is none of a client's to say, wherever it stands. */
export function requestTrailers(raw: readonly string[], { requestNames }: Settings): [string, string][] {
  const trailers: [string, string][] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const key = (raw[at] as string).toLowerCase();
    if (requestHopFields.has(key) || isWithheld(key, requestNames)) continue;
    trailers.push([raw[at] as string, raw[at + 1] as string]);
  }
  return trailers;
}

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
 * The fields of an answer that go on to the client, as a flat list; undefined when one of them cannot be sent. `location`
 * gives the address for clients of one that is the upstream's own.
 */
export function answerFields(
  incoming: IncomingMessage,
  settings: Settings,
  location: (url: string) => string,
): string[] | undefined {
  const fields = answerFieldsOf(incoming, { withheld: settings.responseHeaders, location });
  if (fields !== undefined) addConfigured(fields, settings.responseHeaders);
  return fields;
}
