import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import type { HttpResponse } from "../types.ts";
import type { Exchange } from "./exchange.ts";

/** Sends a file by path, an open handle or a readable stream as the body (reference section 5). */
export async function sendFile(exchange: Exchange, source: Parameters<HttpResponse["send_file"]>[0]): Promise<void> {
  const { response } = exchange;
  if (typeof source !== "string") {
    response.write(source instanceof Readable ? source : source.createReadStream());
    return;
  }
  const { size } = await stat(source);
  response.headers.content_length = size;
  response.write(createReadStream(source));
}
