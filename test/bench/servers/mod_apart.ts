/** An app that the server loads into a worker or into the host. */
import { Readable } from "node:stream";
import type { HttpEvent, Module } from "#core/types.ts";
export const depends = ["http"];

const PIECE_BYTES = 64 * 1024;
const PIECES = Array.from({ length: 16 }, () => Buffer.alloc(PIECE_BYTES, "x"));

export default function apart(module: Module): void {
  module.provides("http", {
    streaming_uploads: true,
    route: {
      "GET /hello": (event: HttpEvent) => {
        event.response.headers.content_type = "text/plain; charset=utf-8";
        return "hello";
      },
      "POST /json": async ({ request, response }: HttpEvent) => {
        response.headers.content_type = "application/json; charset=utf-8";
        return JSON.stringify(await request.json());
      },
      "POST /upload": async ({ request, response }: HttpEvent) => {
        let received = 0;
        for await (const { length } of request.body_stream) received += length;
        response.headers.content_type = "text/plain; charset=utf-8";
        return String(received);
      },
      "GET /download": ({ response }: HttpEvent) => {
        response.headers.content_type = "application/octet-stream";
        response.headers.content_length = String(PIECES.length * PIECE_BYTES);
        return Readable.from(PIECES);
      },
    },
  });
}
