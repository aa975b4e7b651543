import { once } from "node:events";
import { ReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import type { HttpRequest, HttpResponse } from "../../types.ts";
import { HttpError } from "../../util/errors.ts";
import { plainReadStream } from "../../util/plain_file.ts";
import { dropNamed } from "../policy/default_headers.ts";
import { fileResponse } from "./file_response.ts";

/** Error codes that mean "no such file": of the system, and of Node.js for a path with a NUL. */
const missing: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP", "ERR_INVALID_ARG_VALUE"]);

/** The response that a file is sent on. */
interface ResponseTarget extends Pick<HttpResponse, "headers" | "status_code"> {
  readonly request: HttpRequest;
  /** The content type of the file: what the handler has set, or a default. */
  readonly type: string | undefined;
  write(body: Readable | AsyncIterable<Buffer> | undefined): void;
  /** Resolves when memory for one more file is available; undefined when it is available now. */
  enter(): Promise<void> | undefined;
}

/**
 * Sends a file by path, an open handle or a readable stream as the body. For a path the length is
 * known, and the conditions and ranges of a GET are evaluated.
 */
export async function sendFile(
  response: ResponseTarget,
  source: Parameters<HttpResponse["send_file"]>[0],
): Promise<void> {
  if (typeof source === "string") await sendPath(response, source);
  else response.write(source instanceof Readable ? source : source.createReadStream());
}

async function sendPath(response: ResponseTarget, path: string): Promise<void> {
  await response.enter();
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw missing.has(error.code) ? new HttpError(404) : error;
  });
  if (!stats.isFile()) throw new HttpError(404);
  const file = { path, stats };
  const { status, headers, body } = fileResponse(response.request, file, response.type);
  if (status === 412) throw new HttpError(412);
  // A multipart/byteranges response has its own type, which replaces the file's type in any
  // spelling.
  if (headers.content_type !== undefined) dropNamed(response.headers, "Content-Type");
  Object.assign(response.headers, headers);
  if (status !== 200) response.status_code = status;
  // A file that grows meanwhile must not exceed the announced length.
  const whole = () => (stats.size === 0 ? Readable.from([]) : plainReadStream(path, { end: stats.size - 1 }));
  const stream = body === "whole" ? whole() : body;
  // No status is sent before it is certain that the file can be read.
  if (stream instanceof ReadStream) await once(stream, "open");
  response.write(stream);
}
