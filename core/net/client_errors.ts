/** The failures of requests of `net.http`: a table of kinds, and the error class. */
import { reasonOf } from "../util/errors.ts";

interface Failure {
  /** `{name}` is replaced by the detail of that name. */
  readonly message: string;
  /**
   * Matches errors of Node, OpenSSL and undici of this kind, as "code: message"; the first kind
   * that matches is used.
   */
  readonly signs?: RegExp;
}

/** `docs/reference/net-http-connections.md` lists these; a test compares the two. */
export const requestFailures = {
  "invalid-url": { message: "{url} is not a URL of http or https" },
  "invalid-request": { message: "The request to {url} cannot be sent: {reason}", signs: /^UND_ERR_(INVALID_|NOT_SUP)/ },
  "body-failed": {
    message: "The body of the request to {url} failed: {reason}",
    signs: /^UND_ERR_REQ_CONTENT_LENGTH_MISMATCH:/,
  },
  "host-not-found": { message: "The host of {url} is not known: check the name", signs: /^(ENOTFOUND|EAI_\w+):/ },
  "connection-refused": {
    message: "Nothing listens at {url}: check the port, and that the server runs",
    signs: /^ECONNREFUSED:/,
  },
  "connection-failed": { message: "No connection to {url}: {reason}" },
  "connection-closed": {
    message: "The connection to {url} ended before the response was complete",
    signs: /^(ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_SOCKET(?!: bad)|HTTPParserError.*EOF)/,
  },
  "certificate-expired": {
    message: "The certificate of {url} is out of date: {reason}",
    signs: /^CERT_(HAS_EXPIRED|NOT_YET_VALID):/,
  },
  "certificate-name": {
    message: "The certificate of {url} is for another name: {reason}",
    signs: /^ERR_TLS_CERT_ALTNAME_INVALID:/,
  },
  "certificate-untrusted": {
    message: "The certificate of {url} is not trusted ({reason}): pass its issuer as the option ca",
    signs:
      /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_\w+|UNABLE_TO_\w+|CERT_\w+|INVALID_CA|PATH_LENGTH_EXCEEDED):/,
  },
  tls: { message: "TLS with {url} failed: {reason}", signs: /^(ERR_SSL_|ERR_TLS_|ERR_OSSL_|EPROTO:)/ },
  timeout: {
    message: "{url} gave no {awaited} in time ({bound})",
    signs: /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT):/,
  },
  cancelled: { message: "The request to {url} was cancelled" },
  "client-closed": {
    message: "The client was closed before {url} had responded",
    signs: /^UND_ERR_(DESTROYED|CLOSED):/,
  },
  "header-too-large": {
    message: "The header of the response from {url} exceeds {limit} bytes (option max_header)",
    signs: /^UND_ERR_HEADERS_OVERFLOW:/,
  },
  "too-large": { message: "The body of the response from {url} exceeds {limit} bytes (option max_body)" },
  "bad-response": {
    message: "The response from {url} is not valid HTTP: {reason}",
    signs: /^(HTTPParserError|UND_ERR_SOCKET: bad|UND_ERR_INFO|UND_ERR_RES_|ERR_HTTP2_)/,
  },
  "bad-redirect": { message: "{url} redirects to {target}, which is not a URL of http or https" },
  "body-not-replayable": {
    message: "{url} requires the body at {target}, but a stream can be sent only once: send a string or bytes",
  },
  "too-many-redirects": { message: "{url} redirects again after {limit} redirects (option follow)" },
} as const satisfies Record<string, Failure>;

export type RequestFailure = keyof typeof requestFailures;

const kinds = Object.entries(requestFailures) as [RequestFailure, Failure][];

/**
 * The error that a request of `net.http` rejects with. A response with an error status is not an
 * error.
 */
export class RequestError extends Error {
  /** The kind of failure, which is stable. */
  readonly code: RequestFailure;
  /**
   * URL of the request that failed (after redirects: the last one), without user name and password.
   */
  readonly url: string;
  /** The values named in the message. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: RequestFailure, url: string, details: Record<string, unknown> = {}, cause?: unknown) {
    const values: Record<string, unknown> = {};
    const message = requestFailures[code].message.replace(/\{(\w+)\}/g, (whole, name) => {
      values[name] = name === "url" ? url : details[name];
      return String(values[name] ?? whole);
    });
    super(message, cause === undefined ? undefined : { cause });
    this.name = "RequestError";
    this.code = code;
    this.url = url;
    this.details = values;
  }

  /**
   * Returns the RequestError for an error of lower layers; `details` are those that the request
   * knows.
   */
  static from(thrown: unknown, url: string, details: Record<string, unknown>): RequestError {
    if (thrown instanceof RequestError) return thrown;
    return new RequestError(kindOf(thrown), url, { ...details, reason: reasonOf(thrown) || codeOf(thrown) }, thrown);
  }
}

/** Returns the code of an error. The parser's errors have only a name. */
function codeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "";
  return "code" in thrown && typeof thrown.code === "string" ? thrown.code : thrown.name;
}

function kindOf(thrown: unknown): RequestFailure {
  const sign = `${codeOf(thrown)}: ${reasonOf(thrown)}`;
  return kinds.find(([, { signs }]) => signs?.test(sign))?.[0] ?? "connection-failed";
}

/** Returns the URL for people: without user name and password. */
export function shownUrl(url: URL | string): string {
  if (typeof url === "string") return url.replace(/\/\/[^/?#]*@/, "//");
  const shown = new URL(url);
  shown.username = "";
  shown.password = "";
  return shown.href;
}
