/** The steps that answer a request with a file that was found: Koa middleware over the request's own context. */
import { once } from "node:events";
import { ReadStream } from "node:fs";
import { relative, sep } from "node:path";
import { Readable } from "node:stream";
import type { Context, Next } from "koa";
import {
  answerConditions,
  answerRanges,
  encodePath,
  isSeenByMiddleware,
  roomToSend,
  validatorsOf,
} from "../../core/http/index.ts";
import type { HttpEvent, ResponseHeaders } from "../../core/types.ts";
import { chooseVariant } from "./encodings.ts";
import { type Found, statusOf } from "./locate.ts";
import { mediaTypes } from "./media_types.ts";
import { bounded } from "./patches/node/bounded.ts";

/** What the steps tell each other about a request, in `context.state.file`. */
export interface FileState {
  /** What the wildcard of the route stands for; undefined for an exact route. */
  readonly argument: string | undefined;
  /** The file that the path names. */
  named?: Found | undefined;
  /** The form of it that is sent: itself, or a precompressed one. */
  sent?: Found;
  /** Content-Encoding of a precompressed form. */
  coding?: string | undefined;
}

export type FileContext = Context & { state: { file: FileState } };

type Step = (context: FileContext, next: Next) => Promise<unknown>;

/** The form of the file that the client likes best. */
export const precompressed: Step = async (context, next) => {
  const { file } = context.state;
  const named = file.named as Found;
  const { found, coding, varies } = await chooseVariant(named, context.get("Accept-Encoding"));
  file.sent = found;
  file.coding = coding;
  if (varies) context.vary("Accept-Encoding");
  await next();
};

/** Content-Type by extension, unless the caller has set one, and how long the file may be kept. */
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

/** 304 and 412 by the validators of the file (RFC 9110 13). */
export const conditions: Step = async (context, next) => {
  const { sent, coding } = context.state.file;
  const { status, headers } = answerConditions(requestOf(context), sent as Found, coding);
  setHeaders(context, headers);
  if (status === undefined) return next();
  context.status = status;
  context.remove("Content-Type");
  if (status === 412) context.remove("Cache-Control");
};

/** Files are opened when there is room for what they hold. */
export const admitted: Step = async (context, next) => {
  await roomToSend(eventOf(context));
  await next();
};

/** 206 and 416 for the ranges that a GET asks for (RFC 9110 14). */
export const ranges: Step = async (context, next) => {
  const { sent, coding } = context.state.file;
  const file = sent as Found;
  const type = context.response.get("Content-Type") as string;
  const answer = answerRanges(requestOf(context), file, type, validatorsOf(file.stats, coding));
  if (answer?.body === undefined && answer !== undefined) {
    setHeaders(context, answer.headers);
    context.remove("Cache-Control");
    sendNothing(context, answer.status);
    return;
  }
  context.set("Accept-Ranges", "bytes");
  if (coding !== undefined) context.set("Content-Encoding", coding);
  if (answer?.body === undefined) return next();
  context.status = answer.status;
  context.body = answer.body instanceof Readable ? answer.body : Readable.from(answer.body);
  setHeaders(context, answer.headers);
  await opened(context);
};

/**
 * Up to so many bytes are read at once and sent with the head in one piece: that costs less than to send them by a stream,
 * which has a buffer of this size.
 */
const MAX_SMALL_BYTES = 64 * 1024;

/** The whole of a small file, where it can be read without waiting and is what it was when it was found. */
export const small: Step = async (context, next) => {
  const { path, stats, disk } = context.state.file.sent as Found;
  if (disk.read === undefined || context.method === "HEAD" || stats.size > MAX_SMALL_BYTES) return next();
  // What compresses files and keeps them knows them by their streams.
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
 * The whole file, by koa-static: it is given the path of the form to send, encoded as it decodes it once more. The
 * validators are those of what it finds. Of its own, it answers GET and HEAD only, and always sets Cache-Control.
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
  // A file that grows meanwhile must not run over the length that was announced.
  if (!(context.body instanceof ReadStream)) return;
  const { length } = context.response;
  context.body = bounded(context.body, length);
  context.length = length;
};

/** Answers with a status and no body at all, be it one of an error. */
export function sendNothing(context: Context, status: number): void {
  context.status = status;
  context.body = "";
  context.remove("Content-Type");
}

/** No status is sent before it is certain that the file can be read; where it cannot, the status says why. */
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
