/** Decides which responses are compressed, and adapts their headers. */
import { Readable } from "node:stream";
import type { Context } from "koa";
import { codingWeights, preferredCoding } from "../../core/http/index.ts";
import type { EncodingName } from "./encoders.ts";

/** One entry of the option, ready for use. */
export interface Rules {
  readonly encodings: readonly EncodingName[];
  isType(type: string): boolean;
  readonly minSize: number;
  isExcepted(path: string): boolean;
  readonly eventStreams: boolean;
  /** Whether the entry names this app. Then the app's own `compress = false` is ignored. */
  readonly isOfOne: boolean;
}

export const EVENT_STREAM = "text/event-stream";

/**
 * Headers of responses that are already compressed, or that describe the exact bytes. Such
 * responses are not changed.
 */
const fixing = ["Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5"] as const;
const bodiless: ReadonlySet<number> = new Set([204, 205, 206, 304]);

/**
 * Returns false for requests whose responses must never be compressed. The host marks event
 * streams, for which there is a separate rule.
 */
export function mayTouch(context: Context, { encodings, isOfOne, eventStreams }: Rules): boolean {
  const isMarked = context.compress === false;
  const isWanted = isOfOne || (eventStreams && context.type === EVENT_STREAM);
  return encodings.length > 0 && (!isMarked || isWanted);
}

/** Whether clients that accept other codings get a different response. */
export function varies(context: Context, rules: Rules, size: number | undefined): boolean {
  const { status } = context;
  const type = context.type.toLowerCase();
  const isEvents = type === EVENT_STREAM;
  return (
    status >= 200 &&
    !bodiless.has(status) &&
    (size === undefined || size >= Math.max(rules.minSize, 1)) &&
    (isEvents ? rules.eventStreams : rules.isType(type)) &&
    !forbidsCoding(context) &&
    fixing.every((name) => !context.res.hasHeader(name))
  );
}

/**
 * Whether this is a partial response to a URL whose full response varies (RFC 9110, 15.3.7). For
 * several ranges or none, the type is unknown. A superfluous Vary header only costs cache space.
 */
export function isPartOfVarying(context: Context, rules: Rules): boolean {
  const { status, response } = context;
  if (status !== 206 && status !== 416) return false;
  const [, size] = /\/(\d+)$/.exec(textOf(response.get("Content-Range"))) ?? [];
  const isSingle = status === 206 && size !== undefined;
  return (
    (size === undefined || Number(size) >= rules.minSize) &&
    (!isSingle || rules.isType(context.type.toLowerCase())) &&
    !forbidsCoding(context) &&
    !context.res.hasHeader("Content-Encoding")
  );
}

function forbidsCoding(context: Context): boolean {
  return /(^|,)\s*no-transform\s*(,|$)/i.test(textOf(context.response.get("Cache-Control")));
}

/** Returns the coding for this client; undefined for the plain bytes. */
export function codingFor(context: Context, { encodings }: Rules): EncodingName | undefined {
  return preferredCoding(codingWeights(context.get("Accept-Encoding")), encodings);
}

/**
 * Returns the length of the body; undefined for an unknown length, and for bodies that cannot be
 * compressed.
 */
export function sizeOf(context: Context): number | undefined {
  const { body } = context;
  if (typeof body === "string") return Buffer.byteLength(body);
  if (body instanceof Uint8Array) return body.length;
  const length = textOf(context.response.get("Content-Length"));
  return length === "" ? undefined : Number(length);
}

/** Replaces the body of the response. `length` is the new length, if it is known. */
export function recode(context: Context, encoding: EncodingName, body: Buffer | Readable, length?: number): void {
  context.body = body;
  context.set("Content-Encoding", encoding);
  context.remove("Accept-Ranges");
  if (length === undefined) context.remove("Content-Length");
  else context.length = length;
  weaken(context);
}

/** The tag no longer identifies these exact bytes. */
function weaken(context: Context): void {
  const etag = textOf(context.response.get("ETag"));
  if (etag !== "" && !etag.startsWith("W/")) context.set("ETag", `W/${etag}`);
}

/**
 * Whether the client already has the compressed response. It then sends the weak tag, which an app
 * that compares it with its own strong tag does not recognize.
 */
export function isKnown(context: Context): boolean {
  const { method, status } = context;
  return status === 200 && (method === "GET" || method === "HEAD") && asksFor(context, true);
}

/**
 * Responds with 304. The tag is the one that the client sent, because a cache finds its stored
 * response by it.
 */
export function unchanged(context: Context): void {
  context.vary("Accept-Encoding");
  if (asksFor(context, true) && !asksFor(context, false)) weaken(context);
}

/** Whether the client sent the tag of the response, as a weak or a strong one. */
function asksFor(context: Context, weakly: boolean): boolean {
  const etag = textOf(context.response.get("ETag")).replace(/^W\//, "");
  if (etag === "") return false;
  const tags = context.get("If-None-Match").matchAll(/(W\/)?("[^"]*")/g);
  return tags.some(([, weak, tag]) => tag === etag && (weak !== undefined) === weakly);
}

/** A response to HEAD has the headers of GET, and no body. */
export function recodeHead(context: Context, encoding: EncodingName, length?: number): void {
  recode(context, encoding, Readable.from([]), length);
}

export function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : String(value ?? "");
}
