/**
 * Forwarding headers, which describe the client to upstreams: this proxy's own, and those of
 * trusted proxies before it.
 */
import type { HttpRequest } from "../../core/types.ts";

/** Folded names of headers that only proxies may send. From other clients they are dropped. */
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

/**
 * The family of headers that trusted proxies use, by the option `http_legacy_x_forwarded`. Headers
 * of the other family are not trusted.
 */
export type Family = "x-forwarded" | "forwarded";

/**
 * Returns a flat list of names and values. `prefix` is the path of the app, if upstreams do not see
 * it.
 */
export function forwardedFields(request: HttpRequest, family: Family, prefix: string): string[] {
  const isTrusted = request.from_proxy;
  const trusted = (name: string) => (isTrusted ? request.header(name) : undefined);
  const peer = request.conn.ip() || "unknown";
  const proto = request.secure ? "https" : "http";
  const listed = family === "x-forwarded" ? trusted("x-forwarded-host") : undefined;
  const host = listed ?? request.forwarded_host ?? hostOf(request);
  const before = family === "forwarded" ? trusted("forwarded") : undefined;
  const addresses =
    family === "x-forwarded" ? listOf(trusted("x-forwarded-for")) : before === undefined ? [] : forsOf(before);
  const chain = [...addresses, peer];
  // The first hop is the client's, so it has the scheme and host that the client requested.
  const requestedHost = before === undefined ? host : hostOf(request);
  const facts = [`proto=${proto}`, ...(requestedHost === undefined ? [] : [`host=${quoted(requestedHost)}`])].join(";");
  const hops =
    before === undefined
      ? chain.map((address, at) => `for=${nodeOf(address)}${at === 0 ? `;${facts}` : ""}`)
      : [before, `for=${nodeOf(peer)};${facts}`];
  const base = `${trusted("x-forwarded-prefix") ?? ""}${prefix}`;
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

export function hostOf(request: HttpRequest): string | undefined {
  return request.url.host ?? request.header("host");
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

/** RFC 7239, 6: IPv6 addresses have brackets and quotes. */
function nodeOf(address: string): string {
  return quoted(address.includes(":") && !address.includes("[") && !address.includes(".") ? `[${address}]` : address);
}

function quoted(text: string): string {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(text) ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}
