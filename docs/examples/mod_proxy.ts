/**
 * A reverse proxy: `/proxy/...` is answered by another server, named by the option
 * `proxy_upstream`.
 *
 * Bodies stream in both directions at the speed of the slower side. Nothing is held in memory, and
 * a client that leaves ends the request to the other server, too. Location and cookies come as the
 * other server writes them, so it should know the address it is published at, as
 * `proxy_upstream: http://localhost:8080/proxy/` has it.
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
    describe: "The address that requests are passed on to; the rest of the path is appended.",
  },
  proxy_timeout: {
    type: "period",
    default: 30,
    min: 0.1,
    describe: "For how long the other server may be silent before the client gets 504.",
  },
} as const;

export default function proxy(module: Module<typeof options>) {
  const upstream = upstreamOf(module.get_option_string("proxy_upstream"));
  const timeout = module.get_option_period("proxy_timeout");
  // A client of its own: its connections are kept and used again, and are all gone when it is
  // closed.
  const client = new_client({ timeout, body_timeout: timeout });
  module.unload = () => client.close();

  const forward = async (event: HttpEvent, path: string): Promise<HandlerResult> => {
    const { request } = event;
    try {
      const response = await client.request(target(upstream, request, path), {
        method: request.method,
        headers: requestHeaders(request),
        ...(hasBody(request) ? { body: request.body_stream } : {}),
        response_type: "stream",
        signal: request.signal,
      });
      return { status_code: response.code, headers: withoutHops(response.headers), body: response.body };
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      // It was the client whose body was cut off, or came too slowly.
      if (error.code === "body-failed") throw error.cause;
      if (error.code !== "cancelled") module.log.warn("%s", error.message);
      throw new HttpError(error.code === "timeout" ? 504 : 502, "The server behind this one did not respond", {
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
 * The rest of the path goes on as it was sent: in `path` it is decoded, so that `a%2Fb` and `a/b`
 * are one. A path that would climb out of the upstream's path is refused.
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

/** A body is announced by its length or its coding; in HTTP/2 it may come without either. */
function hasBody(request: HttpEvent["request"]): boolean {
  // By the exact name: in the table of headers a client's `Content_Length` would count as well.
  const length = request.header("Content-Length");
  if (length !== undefined) return length !== "0";
  const isOpen = request.httpversion === "2.0" && /^P/.test(request.method);
  return request.header("Transfer-Encoding") !== undefined || isOpen;
}

function requestHeaders(request: HttpEvent["request"]): RequestHeaders {
  // The upstream must not trust what the client says of its own way to this server.
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
 * Headers that speak of one connection and not of the message (RFC 9110, 7.6.1), as both sides here
 * spell them.
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
  const others = Object.entries(headers).filter(([name]) => {
    return !hops.has(name.replaceAll("-", "_")) && !contains_token(named, name.replaceAll("_", "-"));
  });
  return Object.fromEntries(others) as H;
}
