/**
 * A reverse proxy: another server, which the option `proxy_upstream` names, responds to
 * `/proxy/...`.
 *
 * Bodies stream in both directions at the speed of the slower side. They are not stored in memory,
 * and a client that disconnects ends the request to the other server, too. Location and cookies are
 * passed on as the other server writes them. So it should know its public address: use a path such
 * as `proxy_upstream: http://localhost:8080/proxy/`.
 */
import {
  type HandlerResult,
  HttpError,
  type HttpEvent,
  type Module,
  type RequestHeaders,
  type ResponseHeaders,
} from "modhost";
import { contains_token, new_client, RequestError } from "modhost/net/http";

export const depends = ["http"];

export const options = {
  proxy_upstream: {
    type: "string",
    example: "http://localhost:8080/",
    describe: "Address to which requests are forwarded, with the rest of the path appended.",
  },
  proxy_timeout: {
    type: "period",
    default: 30,
    min: 0.1,
    describe: "How long the other server may be silent before the client gets 504.",
  },
} as const;

export default function proxy(module: Module<typeof options>) {
  const upstream = upstreamOf(module.get_option_string("proxy_upstream"));
  const timeout = module.get_option_period("proxy_timeout");
  // The module has a client of its own: its connections are reused, and are closed together with
  // it.
  const client = new_client({ timeout, body_timeout: timeout });
  module.unload = () => client.close();

  const forward = async (event: HttpEvent, path: string): Promise<HandlerResult> => {
    const { request } = event;
    try {
      const received = await client.request(target(upstream, request, path), {
        method: request.method,
        headers: requestHeaders(request),
        ...(hasBody(request) ? { body: request.body_stream } : {}),
        response_type: "stream",
        signal: request.signal,
      });
      return { status_code: received.code, headers: withoutHops(received.headers), body: received.body };
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      // The body of the client was cut off or too slow.
      if (error.code === "body-failed") throw error.cause;
      if (error.code !== "cancelled") module.log.warn("%s", error.message);
      throw new HttpError(error.code === "timeout" ? 504 : 502, "The upstream server did not respond", {
        cause: error,
        expose: true,
      });
    }
  };

  module.provides("http", {
    streaming_uploads: true,
    route: {
      "GET /*": forward,
      "HEAD /*": forward,
      "POST /*": forward,
      "PUT /*": forward,
      "PATCH /*": forward,
      "DELETE /*": forward,
      "OPTIONS /*": forward,
    },
  });
}

function upstreamOf(text: string | undefined): URL {
  const url = URL.parse(text ?? "");
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new Error(`The option proxy_upstream is ${text ?? "not set"}, but must be an address of http or https`);
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/**
 * Appends the rest of the path as it was sent: in the decoded `path`, `a%2Fb` and `a/b` are the
 * same. A path that leaves the upstream's path is rejected.
 */
function target(upstream: URL, { path: whole, url }: HttpEvent["request"], path: string): URL {
  const base = whole
    .slice(0, whole.length - path.length)
    .split("/")
    .filter(Boolean).length;
  const rest = url.raw_path.replace(new RegExp(`^(?:/+[^/]+){${base}}/*`), "");
  const found = new URL(upstream);
  found.pathname += rest;
  found.search = url.query ?? "";
  if (!found.pathname.startsWith(upstream.pathname)) throw new HttpError(400, "The path leaves the proxied folder");
  return found;
}

/** A length or a coding announces a body. In HTTP/2 it may come without either. */
function hasBody(request: HttpEvent["request"]): boolean {
  // The exact name, because in the table of headers a client's `Content_Length` would count as
  // well.
  const length = request.header("Content-Length");
  if (length !== undefined) return length !== "0";
  const isOpen = request.httpversion === "2.0" && /^P/.test(request.method);
  return request.header("Transfer-Encoding") !== undefined || isOpen;
}

function requestHeaders(request: HttpEvent["request"]): RequestHeaders {
  // Removes what the client claims about its own connection: the upstream server could not trust
  // it.
  const { host, expect: _expect, forwarded: _forwarded, ...headers } = withoutHops(request.headers);
  return {
    ...headers,
    content_length: request.header("Content-Length"),
    x_forwarded_for: request.ip,
    x_forwarded_proto: request.secure ? "https" : "http",
    x_forwarded_host: host,
  };
}

/**
 * Headers of a single connection and not of the message (RFC 9110, 7.6.1), with the names of both
 * sides.
 */
const hops: ReadonlySet<string> = new Set([
  "connection",
  "http2_settings",
  "keep_alive",
  "proxy_authenticate",
  "proxy_authorization",
  "proxy_connection",
  "te",
  "trailer",
  "transfer_encoding",
  "upgrade",
]);

function withoutHops<H extends RequestHeaders | ResponseHeaders>(headers: H): H {
  const named = String(headers.connection ?? "");
  const remaining = Object.entries(headers).filter(([name]) => {
    return !hops.has(name.replaceAll("-", "_")) && !contains_token(named, name.replaceAll("_", "-"));
  });
  return Object.fromEntries(remaining) as H;
}
