import { once } from "node:events";
import { createReadStream, ReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import type { HttpRequest, HttpResponse } from "../types.ts";
import { HttpError } from "../util/errors.ts";
import { answerFile } from "./file_answer.ts";

/** System errors that mean "no such file". */
const missing: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG"]);

/** The response that a file is sent on. */
interface FileResponse extends Pick<HttpResponse, "headers" | "status_code"> {
  readonly request: HttpRequest;
  write(body: Readable | AsyncIterable<Buffer> | undefined): void;
  /** Resolves when there is room for one more file; undefined when there is. */
  enter(): Promise<void> | undefined;
}

/**
 * Sends a file by path, an open handle or a readable stream as the body. Of a path the length is
 * known, and the conditions and ranges of a GET are answered.
 */
export async function sendFile(answer: FileResponse, source: Parameters<HttpResponse["send_file"]>[0]): Promise<void> {
  if (typeof source === "string") await sendPath(answer, source);
  else answer.write(source instanceof Readable ? source : source.createReadStream());
}

async function sendPath(response: FileResponse, path: string): Promise<void> {
  await response.enter();
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw missing.has(error.code) ? new HttpError(404) : error;
  });
  if (!stats.isFile()) throw new HttpError(404);
  const { content_type: type } = response.headers;
  const file = { path, stats };
  const { status, headers, body } = answerFile(response.request, file, typeof type === "string" ? type : undefined);
  if (status === 412) throw new HttpError(412);
  Object.assign(response.headers, headers);
  if (status !== 200) response.status_code = status;
  // A file that grows meanwhile must not run over the length that was announced.
  const whole = () => (stats.size === 0 ? Readable.from([]) : createReadStream(path, { end: stats.size - 1 }));
  const stream = body === "whole" ? whole() : body;
  // No status is sent before it is certain that the file can be read.
  if (stream instanceof ReadStream) await once(stream, "open");
  response.write(stream);
}
