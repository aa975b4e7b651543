import { once } from "node:events";
import { createReadStream, type ReadStream, type Stats } from "node:fs";
import { relative, sep } from "node:path";
import { Readable } from "node:stream";
import Koa from "koa";
import koaStatic from "koa-static";
import {
  type ByteRange,
  byteRanges,
  encodePath,
  parseRanges,
  precondition,
  rangeHolds,
  type Validators,
  validatorsOf,
} from "../../core/http/index.ts";
import type { HandlerResult, HttpEvent, RequestHeaders, ResponseHeaders, ServeOptions } from "../../core/types.ts";
import { chooseVariant } from "./encodings.ts";
import { type Found, statusOf } from "./locate.ts";
import { detachedContext, mediaTypes } from "./media_types.ts";

const app = new Koa();
// A stream that fails tells whoever sends it; koa has nobody to tell.
app.on("error", () => {});

/** Makes the function that answers a request with a file that was found: variants, conditions, ranges, bytes. */
export function fileSender({
  mime_map,
  max_age,
}: ServeOptions): (event: HttpEvent, plain: Found) => Promise<HandlerResult> {
  const typeOf = mediaTypes(app, mime_map);

  return async ({ request, response }, plain) => {
    const { headers } = response;
    const { found, coding, varies } = await chooseVariant(plain, request.headers.accept_encoding);
    const { size } = found.stats;
    const type = (headers.content_type ??= typeOf(plain.path)) as string;
    if (varies) headers.vary = headers.vary === undefined ? "Accept-Encoding" : `${headers.vary}, Accept-Encoding`;
    const describe = ({ etag, modified }: Validators) => {
      headers.etag = etag;
      headers.last_modified = new Date(modified).toUTCString();
      headers.accept_ranges = "bytes";
      if (coding !== undefined) headers.content_encoding = coding;
      if (max_age !== undefined) headers.cache_control ??= `max-age=${max_age}`;
    };

    const validators = validatorsOf(found.stats, coding);
    const reads = request.method === "GET" || request.method === "HEAD";
    const refused = reads ? precondition(request.headers, validators) : undefined;
    if (refused === 412) return 412;
    describe(validators);
    if (refused === 304) {
      dropContentHeaders(headers);
      return 304;
    }
    if (request.method === "HEAD") {
      headers.content_length = size;
      // A stream, since the length of a text would replace the one set here.
      return Readable.from([]);
    }

    const ranges = request.method === "GET" ? rangesOf(request.headers, size, validators) : undefined;
    if (ranges === undefined) return whole(found, headers, (stats) => describe(validatorsOf(stats, coding)));
    const [range] = ranges;
    if (range === undefined) {
      dropContentHeaders(headers);
      return { status_code: 416, headers: { content_range: `bytes */${size}` } };
    }
    response.status_code = 206;
    if (ranges.length > 1) {
      const several = byteRanges(found, type, ranges);
      Object.assign(headers, { content_type: several.type, content_length: several.length });
      return several.body;
    }
    headers.content_range = `bytes ${range.first}-${range.last}/${size}`;
    headers.content_length = range.last - range.first + 1;
    return opened(createReadStream(found.path, { start: range.first, end: range.last }), headers);
  };
}

function dropContentHeaders(headers: ResponseHeaders): void {
  for (const name of ["content_type", "content_encoding", "accept_ranges"]) delete headers[name];
}

function rangesOf(headers: RequestHeaders, size: number, validators: Validators): ByteRange[] | undefined {
  if (headers.range === undefined || !rangeHolds(headers.if_range, validators)) return undefined;
  return parseRanges(headers.range, size);
}

/**
 * The whole file, read by koa-static, which is given the path encoded once again as it decodes it. `describe` gets what
 * it finds; of the headers that it sets only the length is taken.
 */
async function whole(
  { path, root }: Found,
  headers: ResponseHeaders,
  describe: (stats: Stats) => void,
): Promise<HandlerResult> {
  const context = detachedContext(app, `/${encodePath(relative(root, path).replaceAll(sep, "/"))}`);
  const serve = koaStatic(root, {
    index: false,
    format: false,
    hidden: true,
    brotli: false,
    gzip: false,
    setHeaders: (_response, _path, stats) => describe(stats),
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
