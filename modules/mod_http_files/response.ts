/** The steps that send a file, as Koa middleware over the request's own context. */
import { once } from "node:events";
import { ReadStream } from "node:fs";
import { relative, sep } from "node:path";
import { Readable } from "node:stream";
import type { Context, Next } from "koa";
import {
  checkConditions,
  encodePath,
  isSeenByMiddleware,
  rangeResponse,
  roomToSend,
  validatorsOf,
} from "../../core/http/index.ts";
import type { HttpEvent, ResponseHeaders } from "../../core/types.ts";
import { chooseVariant } from "./encodings.ts";
import { type Found, statusOf } from "./locate.ts";
import { mediaTypes } from "./media_types.ts";
import { bounded } from "./patches/node/bounded.ts";

/** State that the steps share about a request, in `context.state.file`. */
export interface FileState {
  /** The part of the path that matched the wildcard of the route; undefined for an exact route. */
  readonly argument: string | undefined;
  /** The file that the path names. */
  named?: Found | undefined;
  /** The variant that is sent: the file itself, or a precompressed form. */
  sent?: Found;
  /** Content-Encoding of a precompressed form. */
  coding?: string | undefined;
}

export type FileContext = Context & { state: { file: FileState } };

type Step = (context: FileContext, next: Next) => Promise<unknown>;

/** Chooses the variant of the file that the client prefers. */
export const precompressed: Step = async (context, next) => {
  const { file } = context.state;
  const named = file.named as Found;
  const { found, coding, varies } = await chooseVariant(named, context.get("Accept-Encoding"));
  file.sent = found;
  file.coding = coding;
  if (varies) context.vary("Accept-Encoding");
  await next();
};

/** Sets Content-Type by extension, unless the caller has set one, and the cache lifetime. */
export function described(mimeMap: Readonly<Record<string, string>> | undefined, maxAge: number | undefined): Step {
  const setType = mediaTypes(mimeMap);
  return async (context, next) => {
    const { named } = context.state.file;
    if (context.type === "") setType(context, (named as Found).path);
    if (maxAge !== undefined && context.response.get("Cache-Control") === undefined) {
      context.set("Cache-Control", `max-age=${maxAge}`);
    }
    await next();
  };
}

/** Responds with 304 or 412 by the validators of the file (RFC 9110, 13). */
export const conditions: Step = async (context, next) => {
  const { sent, coding } = context.state.file;
  const { status, headers } = checkConditions(requestOf(context), sent as Found, coding);
  setHeaders(context, headers);
  if (status === undefined) return next();
  context.status = status;
  context.remove("Content-Type");
  if (status === 412) context.remove("Cache-Control");
};

/** Waits until there is memory to send the file, before it is opened. */
export const admitted: Step = async (context, next) => {
  await roomToSend(eventOf(context));
  await next();
};

/** Responds with 206 or 416 to the ranges that a GET requests (RFC 9110, 14). */
export const ranges: Step = async (context, next) => {
  const { sent, coding } = context.state.file;
  const file = sent as Found;
  const type = context.response.get("Content-Type") as string;
  const ranges = rangeResponse(requestOf(context), file, type, validatorsOf(file.stats, coding));
  if (ranges?.body === undefined && ranges !== undefined) {
    setHeaders(context, ranges.headers);
    context.remove("Cache-Control");
    sendNothing(context, ranges.status);
    return;
  }
  context.set("Accept-Ranges", "bytes");
  if (coding !== undefined) context.set("Content-Encoding", coding);
  if (ranges?.body === undefined) return next();
  context.status = ranges.status;
  context.body = ranges.body instanceof Readable ? ranges.body : Readable.from(ranges.body);
  setHeaders(context, ranges.headers);
  await opened(context);
};

/**
 * Files up to this size are read at once and sent together with the head. That is cheaper than a
 * stream, which has a buffer of this size anyway.
 */
const MAX_SMALL_BYTES = 64 * 1024;

/**
 * Sends a small file whole, if it can be read without waiting and has not changed since it was
 * found.
 */
export const small: Step = async (context, next) => {
  const { path, stats, disk } = context.state.file.sent as Found;
  if (disk.read === undefined || context.method === "HEAD" || stats.size > MAX_SMALL_BYTES) return next();
  // Middleware that caches compressed files recognizes them by their streams.
  if (isSeenByMiddleware(eventOf(context))) return next();
  try {
    const bytes = disk.read(path, stats);
    if (bytes === undefined) return next();
    context.body = bytes;
  } catch (error) {
    unreadable(context, error);
  }
};

/**
 * Sends the whole file through koa-static. It gets the path of the chosen variant, encoded, because
 * it decodes paths. Its validators are those of the file that it finds. By itself it only responds
 * to GET and HEAD, and always sets Cache-Control.
 */
const loadKoaStatic = async () => (await import("koa-static")).default;
let loaded: ReturnType<typeof loadKoaStatic> | undefined;

export const whole: Step = async (context) => {
  const { sent, coding } = context.state.file;
  const { path, root } = sent as Found;
  const koaStatic = await (loaded ??= loadKoaStatic());
  const serve = koaStatic(root, {
    index: false,
    format: false,
    hidden: true,
    brotli: false,
    gzip: false,
    setHeaders: (response, _path, stats) => {
      const { etag } = validatorsOf(stats, coding);
      response.setHeader("ETag", etag);
      response.setHeader("Last-Modified", stats.mtime.toUTCString());
    },
  });
  const { method, url } = context;
  const isTimed = context.response.get("Cache-Control") !== undefined;
  context.url = `/${encodePath(relative(root, path).replaceAll(sep, "/"))}`;
  if (method !== "HEAD") context.method = "GET";
  try {
    await serve(context as Parameters<typeof serve>[0], async () => undefined);
  } finally {
    Object.assign(context, { method, url });
  }
  if (!isTimed) context.remove("Cache-Control");
  await opened(context);
  // A file that grows meanwhile must not exceed the announced length.
  if (!(context.body instanceof ReadStream)) return;
  const { length } = context.response;
  context.body = bounded(context.body, length);
  context.length = length;
};

/** Responds with a status and no body, even for an error. */
export function sendNothing(context: Context, status: number): void {
  context.status = status;
  context.body = "";
  context.remove("Content-Type");
}

/** Opens the file before the status is sent, so that a failure gets its own status. */
async function opened(context: Context): Promise<void> {
  if (!(context.body instanceof ReadStream)) return;
  try {
    await once(context.body, "open");
  } catch (error) {
    unreadable(context, error);
  }
}

function unreadable(context: Context, error: unknown): void {
  context.remove("Cache-Control");
  context.body = null;
  context.status = statusOf(error);
}

function eventOf(context: Context): HttpEvent {
  return (context.state as { event: HttpEvent }).event;
}

function requestOf(context: Context) {
  return eventOf(context).request;
}

function setHeaders(context: Context, headers: ResponseHeaders): void {
  for (const [name, value] of Object.entries(headers)) context.set(name.replaceAll("_", "-"), String(value));
}
