import { once } from "node:events";
import { ReadStream } from "node:fs";
import { relative, sep } from "node:path";
import koaStatic from "koa-static";
import { addVary, answerFile, detachedContext, encodePath, validatorsOf } from "../../core/http/index.ts";
import type { HandlerResult, HttpEvent, ResponseHeaders, ServeOptions } from "../../core/types.ts";
import { chooseVariant } from "./encodings.ts";
import { type Found, statusOf } from "./locate.ts";
import { mediaTypes } from "./media_types.ts";

/** Makes the function that answers a request with a file that was found: variants, conditions, ranges, bytes. */
export function fileSender({
  mime_map,
  max_age,
}: ServeOptions): (event: HttpEvent, plain: Found) => Promise<HandlerResult> {
  const typeOf = mediaTypes(mime_map);

  return async ({ request, response }, plain) => {
    const { headers } = response;
    const { found, coding, varies } = await chooseVariant(plain, request.headers.accept_encoding);
    const type = (headers.content_type ?? typeOf(plain.path)) as string;
    if (varies) addVary(headers, "Accept-Encoding");
    const answer = answerFile(request, found, { type, coding });
    if (answer.status === 412) return 412;
    delete headers.content_type;
    Object.assign(headers, answer.headers);
    if (max_age !== undefined && answer.status !== 416) headers.cache_control ??= `max-age=${max_age}`;
    const { body } = answer;
    if (body === "whole") return whole(found, headers, coding);
    response.status_code = answer.status;
    return body instanceof ReadStream ? opened(body, headers) : (body ?? {});
  };
}

/**
 * The whole file, read by koa-static, which is given the path encoded once again as it decodes it. The validators are
 * those of what it finds; of the headers that it sets only the length is taken.
 */
async function whole(
  { path, root }: Found,
  headers: ResponseHeaders,
  coding: string | undefined,
): Promise<HandlerResult> {
  const context = detachedContext({ url: `/${encodePath(relative(root, path).replaceAll(sep, "/"))}` });
  const serve = koaStatic(root, {
    index: false,
    format: false,
    hidden: true,
    brotli: false,
    gzip: false,
    setHeaders: (_response, _path, stats) => {
      headers.etag = validatorsOf(stats, coding).etag;
      headers.last_modified = stats.mtime.toUTCString();
    },
  });
  await serve(context as Parameters<typeof serve>[0], async () => {});
  const stream = context.body as ReadStream | undefined;
  if (stream === undefined) return 404;
  const { length } = context.response;
  headers.content_length = length;
  // A file that grows meanwhile must not run over the length that was announced.
  return opened(Object.assign(stream, { end: length - 1 }), headers);
}

/** The stream once its file is open, or the status for why it cannot be. */
async function opened(stream: ReadStream, headers: ResponseHeaders): Promise<HandlerResult> {
  try {
    await once(stream, "open");
    return stream;
  } catch (error) {
    delete headers.cache_control;
    return statusOf(error);
  }
}
