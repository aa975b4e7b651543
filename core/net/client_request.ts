/**
 * The parts of a request of `net.http`: its options with their checks, its body, and its redirects.
 */

import { Readable } from "node:stream";
import { isUint8Array } from "node:util/types";
import type { FormData as SendableForm } from "undici";
import { byteStream } from "../util/body_stream.ts";
import { reasonOf } from "../util/errors.ts";
import { wireFields } from "../util/header_fields.ts";
import { METHODS } from "../util/node_http.ts";
import { urldecode } from "../util/url.ts";
import { RequestError, shownUrl } from "./client_errors.ts";
import { undici } from "./undici.ts";

/** The form of `response.body`: UTF-8 text, a Buffer, or a Readable that is read as it arrives. */
export type ResponseType = "text" | "bytes" | "stream";

/**
 * Everything except strings, bytes and forms can be sent only once, so a redirect cannot repeat it.
 */
export type RequestBody =
  | string
  | Uint8Array
  | URLSearchParams
  | FormData
  | Readable
  | ReadableStream<Uint8Array>
  | AsyncIterable<string | Uint8Array>;

type Pem = string | Buffer | readonly (string | Buffer)[];

/** Header names use `_` or `-`; a list is one field line per value. */
export type RequestFields = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Options of connections: requests that differ in one of them share no connection. */
export interface ConnectionOptions {
  /** Seconds until the connection is established, including TLS. Default 10. */
  readonly connect_timeout?: number;
  /** Maximum bytes of names and values in the header of the response. Default 16 KiB. */
  readonly max_header?: number;
  /** Skips the check of the server's certificate. Default false. */
  readonly insecure?: boolean;
  /** PEM certificates of the authorities to trust instead of the usual ones. */
  readonly ca?: Pem;
  /** PEM of the client certificate, and of its key. */
  readonly cert?: Pem;
  readonly key?: Pem;
  /** Server name for TLS, which is also checked; default: the host of the URL. */
  readonly servername?: string;
}

/** Options of one request; `Infinity` means no limit. */
export interface RequestOptions<T extends ResponseType = ResponseType> extends ConnectionOptions {
  /** Default GET; POST with a body. */
  readonly method?: string;
  readonly headers?: RequestFields;
  readonly body?: RequestBody;
  readonly response_type?: T;
  /** Seconds without progress until the head of the response has arrived. Default 60. */
  readonly timeout?: number;
  /** Seconds between two pieces of the response's body. Default 60. */
  readonly body_timeout?: number;
  /** Maximum number of redirects to follow. Default 0: a redirect is a result like any other. */
  readonly follow?: number;
  /** Maximum bytes of the response's body. Default 64 MiB; for "stream" no limit. */
  readonly max_body?: number;
  /** Cancels the request when it is aborted, also while the body is still arriving. */
  readonly signal?: AbortSignal;
}

/** Defaults for every request of one client, and options of its connections. */
export interface ClientOptions extends Omit<RequestOptions, "body" | "method" | "response_type" | "signal"> {
  /** Maximum number of connections to one origin; further requests wait. Default 64. */
  readonly connections?: number;
  /**
   * Seconds for which an unused connection stays open, unless the server specifies another time.
   * Default 4.
   */
  readonly keep_alive?: number;
  /** Whether to use HTTP/2 over TLS with servers that offer it. Default false. */
  readonly http2?: boolean;
}

interface Rule {
  readonly holds: (value: unknown) => boolean;
  readonly allowed: string;
}

const isNumber = (value: unknown): value is number => typeof value === "number" && !Number.isNaN(value);
const isPem = (value: unknown) => typeof value === "string" || isUint8Array(value);
const seconds: Rule = { holds: (value) => isNumber(value) && value > 0, allowed: "a number of seconds above 0" };
const bytes: Rule = { holds: (value) => isNumber(value) && value >= 0, allowed: "a number of bytes" };
const flag: Rule = { holds: (value) => typeof value === "boolean", allowed: "true or false" };
const text: Rule = { holds: (value) => typeof value === "string", allowed: "a string" };
const pem: Rule = {
  holds: (value) => isPem(value) || (Array.isArray(value) && value.every(isPem)),
  allowed: "PEM text, or a list of such texts",
};

const requestRules = {
  method: {
    holds: (value) =>
      typeof value === "string" && /^[!#$%&'*+\-.^_`|~\w]+$/.test(value) && value.toUpperCase() !== "CONNECT",
    allowed: "a method of HTTP other than CONNECT",
  },
  headers: { holds: (value) => typeof value === "object", allowed: "an object of names and values" },
  body: { holds: isBody, allowed: "a string, bytes, a form, a stream or an async iterable" },
  response_type: {
    holds: (value) => value === "text" || value === "bytes" || value === "stream",
    allowed: '"text", "bytes" or "stream"',
  },
  timeout: seconds,
  body_timeout: seconds,
  connect_timeout: seconds,
  follow: { holds: (value) => isNumber(value) && value >= 0, allowed: "a number from 0" },
  max_body: bytes,
  max_header: { holds: isCount, allowed: "a whole number of bytes above 0" },
  signal: { holds: (value) => value instanceof AbortSignal, allowed: "an AbortSignal" },
  insecure: flag,
  ca: pem,
  cert: pem,
  key: pem,
  servername: text,
} as const satisfies Record<keyof RequestOptions, Rule>;

const { method: _method, body: _body, response_type: _type, signal: _signal, ...shared } = requestRules;

const clientRules = {
  ...shared,
  connections: { holds: isCount, allowed: "a whole number above 0" },
  keep_alive: seconds,
  http2: flag,
} as const satisfies Record<keyof ClientOptions, Rule>;

/**
 * Returns the problem of the options of a request or a client, as a sentence; undefined if there is
 * none.
 */
export function optionProblem(options: object, kind: "request" | "client" = "request"): string | undefined {
  const rules: Readonly<Record<string, Rule>> = kind === "request" ? requestRules : clientRules;
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) return `there is no option ${name}; there are ${Object.keys(rules).join(", ")}`;
    if (!rule.holds(value)) return `the option ${name} takes ${rule.allowed}`;
  }
  return undefined;
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) > 0;
}

function isBody(value: unknown): boolean {
  return (
    isReplayable(value) ||
    value instanceof ReadableStream ||
    (typeof value === "object" && value !== null && Symbol.asyncIterator in value)
  );
}

function isReplayable(body: unknown): body is string | Uint8Array | URLSearchParams | FormData {
  return typeof body === "string" || isUint8Array(body) || body instanceof URLSearchParams || body instanceof FormData;
}

/** A request as it is sent to one address. */
export interface Outgoing {
  /** Without user name, password and fragment. */
  readonly url: URL;
  readonly method: string;
  /** Header fields by lower-case name with dashes. */
  readonly fields: RequestFields;
  readonly body: RequestBody | undefined;
}

/** Header fields by lower-case name with dashes; later sources replace fields of earlier ones. */
export function mergeFields(...sources: (RequestFields | undefined)[]): RequestFields {
  const merged: Record<string, RequestFields[string]> = Object.create(null);
  for (const source of sources) {
    for (const [name, value] of Object.entries(source ?? {})) merged[name.replaceAll("_", "-").toLowerCase()] = value;
  }
  return merged;
}

/** Parses a URL. @throws a RequestError "invalid-url" */
export function parseUrl(url: string | URL): URL {
  const parsed = URL.parse(String(url));
  if (!isWeb(parsed)) throw new RequestError("invalid-url", shownUrl(parsed ?? String(url)));
  return parsed;
}

function isWeb(url: URL | null): url is URL {
  return url !== null && (url.protocol === "http:" || url.protocol === "https:");
}

/**
 * Builds the request. User name and password of the URL become the Authorization field, unless
 * there is one.
 */
export function outgoingOf(url: URL, options: RequestOptions, defaults: RequestFields): Outgoing {
  const { body, method = body === undefined ? "GET" : "POST", headers } = options;
  const isForm = typeof body === "string" || body instanceof URLSearchParams;
  const typed = isForm ? { "content-type": "application/x-www-form-urlencoded" } : {};
  // Methods are case-sensitive, and servers do not know a method post.
  const standard = METHODS.find((name) => name === method.toUpperCase());
  return {
    url: bare(url),
    method: standard ?? method,
    fields: mergeFields(typed, credentials(url), defaults, headers),
    body,
  };
}

function bare(url: URL): URL {
  const plain = new URL(shownUrl(url));
  plain.hash = "";
  return plain;
}

function credentials({ username, password }: URL): RequestFields {
  if (username === "" && password === "") return {};
  const pair = Buffer.from(`${urldecode(username)}:${urldecode(password)}`).toString("base64");
  return { authorization: `Basic ${pair}` };
}

const bodyFields = ["content-type", "content-length", "content-encoding", "content-language", "content-location"];
const originFields = ["authorization", "proxy-authorization", "cookie", "host"];

/**
 * Returns the request for a redirect (RFC 9110, 15.4): 303, and 301 or 302 after POST, make it a
 * GET without body; secrets are not sent to another origin. Undefined if the response is not a
 * redirect. @throws a RequestError "bad-redirect" or "body-not-replayable"
 */
export function redirected(from: Outgoing, status: number, location: string | undefined): Outgoing | undefined {
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined;
  const target = URL.parse(Buffer.from(location, "latin1").toString(), from.url.href);
  if (!isWeb(target)) {
    throw new RequestError("bad-redirect", from.url.href, { target: shownUrl(target ?? location) });
  }
  const isRead = from.method === "GET" || from.method === "HEAD";
  const becomesGet = (status === 303 && !isRead) || ((status === 301 || status === 302) && from.method === "POST");
  if (!becomesGet && from.body !== undefined && !isReplayable(from.body)) {
    throw new RequestError("body-not-replayable", from.url.href, { target: shownUrl(target) });
  }
  const fields = { ...from.fields };
  if (becomesGet) for (const name of bodyFields) delete fields[name];
  if (target.origin !== from.url.origin) for (const name of originFields) delete fields[name];
  return {
    url: bare(target),
    method: becomesGet ? "GET" : from.method,
    fields: { ...fields, ...credentials(target) },
    body: becomesGet ? undefined : from.body,
  };
}

/** A request in the form that undici takes. */
export interface Wire {
  /** Names and values alternately. */
  readonly headers: string[];
  readonly payload: Buffer | Readable | SendableForm | null;
  /** The payload, if it is a stream. */
  readonly source: Readable | undefined;
}

const PIECE_BYTES = 64 * 1024;

/** Converts a request for undici. @throws a RequestError "invalid-request" or "body-failed" */
export function wireOf({ url, fields, body }: Outgoing): Wire {
  const payload = payloadOf(body);
  const source = payload instanceof Readable ? payload : undefined;
  if (source !== undefined && (source.destroyed || source.readableEnded)) {
    throw new RequestError("body-failed", url.href, { reason: "the stream was read or closed before" });
  }
  const length = fields["content-length"] ?? lengthOf(body);
  try {
    const headers = wireFields(fields, false);
    if (length !== undefined) headers.push("Content-Length", String(length));
    return { headers, payload, source };
  } catch (error) {
    const { name, reason } = (error as { details?: Record<string, unknown> }).details ?? {};
    const text = name === undefined ? reasonOf(error) : `header ${name}: ${reason}`;
    throw new RequestError("invalid-request", url.href, { reason: text }, error);
  }
}

function payloadOf(body: RequestBody | undefined): Wire["payload"] {
  if (body === undefined) return null;
  if (body instanceof FormData) {
    const form = new (undici().FormData)();
    for (const [name, value] of body) form.append(name, value);
    return form;
  }
  if (!isReplayable(body)) return byteStream(body) ?? null;
  const whole = isUint8Array(body) ? Buffer.from(body.buffer, body.byteOffset, body.length) : Buffer.from(String(body));
  return whole.length > PIECE_BYTES ? Readable.from(slices(whole)) : whole;
}

/** Splits a long body into pieces, so that the progress of sending is visible. */
function* slices(whole: Buffer): Iterable<Buffer> {
  for (let at = 0; at < whole.length; at += PIECE_BYTES) yield whole.subarray(at, at + PIECE_BYTES);
}

function lengthOf(body: RequestBody | undefined): number | undefined {
  if (body instanceof FormData || !isReplayable(body)) return undefined;
  return isUint8Array(body) ? body.length : Buffer.byteLength(String(body));
}
