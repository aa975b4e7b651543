/** Who asks, for upstreams: the forwarding headers of this proxy, and of those before it that are trusted. */
import { lineOf } from "../../core/http/index.ts";
import type { HttpRequest } from "../../core/types.ts";

/** Headers that only proxies may write: whatever others say by them is dropped. In lower case, with dashes. */
export const forwardingFields: ReadonlySet<string> = new Set([
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-real-ip",
  "x-request-id",
]);

/** The family of headers by which trusted proxies tell: the option `http_legacy_x_forwarded`. The other one is no proxy's word. */
export type Family = "x-forwarded" | "forwarded";

/** As a flat list of names and values. `prefix`: of the app, where upstreams do not see it. */
export function forwardedFields(request: HttpRequest, family: Family, prefix: string): string[] {
  const isTrusted = request.from_proxy;
  const told = (name: string) => (isTrusted ? lineOf(request.raw.rawHeaders, name) : undefined);
  const peer = request.conn.ip() || "unknown";
  const proto = request.secure ? "https" : "http";
  const listed = family === "x-forwarded" ? told("x-forwarded-host") : undefined;
  const host = listed ?? request.forwarded_host ?? hostOf(request);
  const before = family === "forwarded" ? told("forwarded") : undefined;
  const addresses =
    family === "x-forwarded" ? listOf(told("x-forwarded-for")) : before === undefined ? [] : forsOf(before);
  const chain = [...addresses, peer];
  // The first hop is the client's: its scheme and host are those that it asked for.
  const asked = before === undefined ? host : hostOf(request);
  const facts = [`proto=${proto}`, ...(asked === undefined ? [] : [`host=${quoted(asked)}`])].join(";");
  const hops =
    before === undefined
      ? chain.map((address, at) => `for=${nodeOf(address)}${at === 0 ? `;${facts}` : ""}`)
      : [before, `for=${nodeOf(peer)};${facts}`];
  const base = `${told("x-forwarded-prefix") ?? ""}${prefix}`;
  return [
    "X-Forwarded-For",
    chain.join(", "),
    "X-Forwarded-Proto",
    proto,
    ...(host === undefined ? [] : ["X-Forwarded-Host", host]),
    ...(base === "" ? [] : ["X-Forwarded-Prefix", base]),
    "Forwarded",
    hops.join(", "),
    "X-Real-IP",
    request.ip || "unknown",
    "X-Request-Id",
    request.id,
  ];
}

export function hostOf({ url, headers }: HttpRequest): string | undefined {
  return url.host ?? headers.host;
}

function listOf(value: string | undefined): string[] {
  return (value ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "");
}

function forsOf(forwarded: string): string[] {
  return [...forwarded.matchAll(/(?:^|[;,])\s*for=(?:"([^"]*)"|([^;,\s]+))/gi)].map(([, inQuotes, plain]) =>
    (inQuotes ?? plain ?? "").replace(/^\[(.*)\](?::\d+)?$/, "$1"),
  );
}

/** RFC 7239, 6: addresses of IPv6 in brackets and quotes. */
function nodeOf(address: string): string {
  return quoted(address.includes(":") && !address.includes("[") && !address.includes(".") ? `[${address}]` : address);
}

function quoted(text: string): string {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(text) ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}
