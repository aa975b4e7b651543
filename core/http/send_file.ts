import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { HttpError } from "../errors.ts";
import type { HttpResponse } from "../types.ts";
import { precondition, rangeHolds, validatorsOf } from "./conditions.ts";
import type { Exchange } from "./exchange.ts";
import { byteRanges, parseRanges } from "./ranges.ts";

/**
 * Sends a file by path, an open handle or a readable stream as the body (reference section 5). Of a path the length is
 * known, and the conditions and ranges of a GET are answered.
 */
export async function sendFile(exchange: Exchange, source: Parameters<HttpResponse["send_file"]>[0]): Promise<void> {
  const { response } = exchange;
  if (typeof source === "string") await sendPath(exchange, source);
  else response.write(source instanceof Readable ? source : source.createReadStream());
}

/** System errors that mean "no such file". */
const missing: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG"]);

async function sendPath({ request, response }: Exchange, path: string): Promise<void> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw missing.has(error.code) ? new HttpError(404) : error;
  });
  if (!stats.isFile()) throw new HttpError(404);
  const { headers } = response;
  const { size } = stats;
  const validators = validatorsOf(stats);
  headers.etag ??= validators.etag;
  headers.last_modified ??= new Date(validators.modified).toUTCString();
  headers.accept_ranges = "bytes";
  if (request.method === "GET" || request.method === "HEAD") {
    const refused = precondition(request.headers, validators);
    if (refused === 412) throw new HttpError(412);
    if (refused === 304) {
      response.status_code = 304;
      response.write(undefined);
      return;
    }
  }
  const asked =
    request.method === "GET" && rangeHolds(request.headers.if_range, validators) ? request.headers.range : undefined;
  const ranges = asked === undefined ? undefined : parseRanges(asked, size);
  if (ranges === undefined) {
    headers.content_length = size;
    // A file that grows meanwhile must not run over the length that was announced.
    response.write(size === 0 ? Readable.from([]) : createReadStream(path, { end: size - 1 }));
    return;
  }
  const [range] = ranges;
  if (range === undefined) {
    response.status_code = 416;
    headers.content_range = `bytes */${size}`;
    response.write(undefined);
    return;
  }
  response.status_code = 206;
  if (ranges.length > 1) {
    const type = headers.content_type;
    const several = byteRanges({ path, stats }, typeof type === "string" ? type : "application/octet-stream", ranges);
    Object.assign(headers, { content_type: several.type, content_length: several.length });
    response.write(several.body);
    return;
  }
  headers.content_range = `bytes ${range.first}-${range.last}/${size}`;
  headers.content_length = range.last - range.first + 1;
  response.write(createReadStream(path, { start: range.first, end: range.last }));
}
