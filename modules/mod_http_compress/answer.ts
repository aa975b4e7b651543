/** Which answers are compressed, and what becomes of their headers. */
import { Readable } from "node:stream";
import type { Context } from "koa";
import { codingWeights, preferredCoding } from "../../core/http/index.ts";
import type { EncodingName } from "./encodings.ts";

/** One entry of the option, ready for use. */
export interface Rules {
  readonly encodings: readonly EncodingName[];
  isType(type: string): boolean;
  readonly minSize: number;
  isExcepted(path: string): boolean;
  readonly eventStreams: boolean;
  /** Whoever wrote the entry meant this very app: what it says by `compress = false` does not count. */
  readonly isOfOne: boolean;
}

export const EVENT_STREAM = "text/event-stream";

/** Headers of answers that are compressed already, or whose bytes they tell: these stay as they are. */
const fixing = ["Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5"] as const;
const bodiless: ReadonlySet<number> = new Set([204, 205, 206, 304]);

/** False where nothing is to be compressed, whatever the answer is; the host marks event streams, which have a rule of their own. */
export function mayTouch(context: Context, { encodings, isOfOne, eventStreams }: Rules): boolean {
  const isMarked = context.compress === false;
  const isWanted = isOfOne || (eventStreams && context.type === EVENT_STREAM);
  return encodings.length > 0 && (!isMarked || isWanted);
}

/** The answer is another one for clients that accept other codings. */
export function varies(context: Context, rules: Rules, size: number | undefined): boolean {
  const { status, response } = context;
  const cacheControl = textOf(response.get("Cache-Control"));
  const type = context.type.toLowerCase();
  const isEvents = type === EVENT_STREAM;
  return (
    status >= 200 &&
    !bodiless.has(status) &&
    (size === undefined || size >= Math.max(rules.minSize, 1)) &&
    (isEvents ? rules.eventStreams : rules.isType(type)) &&
    !/(^|,)\s*no-transform\s*(,|$)/i.test(cacheControl) &&
    fixing.every((name) => !context.res.hasHeader(name))
  );
}

/** The coding for this client; undefined: the plain bytes. */
export function codingFor(context: Context, { encodings }: Rules): EncodingName | undefined {
  return preferredCoding(codingWeights(context.get("Accept-Encoding")), encodings);
}

/** Bytes of the body; undefined for one whose length nobody knows, and for what is no body that can be compressed. */
export function sizeOf(context: Context): number | undefined {
  const { body } = context;
  if (typeof body === "string") return Buffer.byteLength(body);
  if (body instanceof Uint8Array) return body.length;
  const length = textOf(context.response.get("Content-Length"));
  return length === "" ? undefined : Number(length);
}

/** The answer has another body now: `length` of it, where that is known. */
export function recode(context: Context, encoding: EncodingName, body: Buffer | Readable, length?: number): void {
  context.body = body;
  context.set("Content-Encoding", encoding);
  context.remove("Accept-Ranges");
  if (length === undefined) context.remove("Content-Length");
  else context.length = length;
  weaken(context);
}

/** The tag no longer stands for these very bytes. */
function weaken(context: Context): void {
  const etag = textOf(context.response.get("ETag"));
  if (etag !== "" && !etag.startsWith("W/")) context.set("ETag", `W/${etag}`);
}

/**
 * True where the client has this answer already, in a compressed form: it asks by the weak tag, which an app that compares
 * with its own does not know.
 */
export function isKnown(context: Context): boolean {
  const { method, status } = context;
  return status === 200 && (method === "GET" || method === "HEAD") && asksFor(context, true);
}

/** Of a 304, the tag is the one that the client asked by: a cache finds its answer by it. */
export function unchanged(context: Context): void {
  context.vary("Accept-Encoding");
  if (asksFor(context, true) && !asksFor(context, false)) weaken(context);
}

/** The client names the tag of the answer, as a weak or as a strong one. */
function asksFor(context: Context, weakly: boolean): boolean {
  const etag = textOf(context.response.get("ETag")).replace(/^W\//, "");
  if (etag === "") return false;
  const asked = context.get("If-None-Match").matchAll(/(W\/)?("[^"]*")/g);
  return asked.some(([, weak, tag]) => tag === etag && (weak !== undefined) === weakly);
}

/** An answer to HEAD has the headers of GET, and no body. */
export function recodeHead(context: Context, encoding: EncodingName, length?: number): void {
  recode(context, encoding, Readable.from([]), length);
}

export function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : String(value ?? "");
}
