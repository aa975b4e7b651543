/**
 * One HTTP request and its response, both streamed. `net.http`, which modules use, does not expose
 * what is needed here: trailers, and responses that begin while the request is still being sent.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { packageVersion, reasonOf } from "../../../../core/cli/index.ts";
import type { Server } from "./server.ts";

export interface Upload {
  /** Value of the Content-Type header. */
  readonly type: string;
  readonly content: AsyncIterable<Uint8Array>;
}

export interface RpcResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * Throws if the response breaks off. If an unreadable upload is the reason, it throws that error.
   */
  readonly body: AsyncIterable<Buffer>;
  /**
   * Returns the error that the server reported after the values; available once the body has been
   * read.
   */
  late(): string | undefined;
}

/** @throws Error if the server is unreachable, or if the upload cannot be read */
export async function exchange(
  server: Server,
  method: "GET" | "POST",
  path: string,
  { upload, signal }: { readonly upload?: Upload; readonly signal?: AbortSignal } = {},
): Promise<RpcResponse> {
  const { origin, socketPath, connect, authorization } = server;
  const { request: send } = process.getBuiltinModule(origin.protocol === "https:" ? "node:https" : "node:http");
  const headers = {
    "User-Agent": `modhost/${packageVersion()}`,
    // Without this, the host answers errors with HTML pages.
    Accept: "text/plain, */*;q=0.5",
    ...(authorization === undefined ? {} : { Authorization: authorization }),
    ...(upload === undefined ? {} : { "Content-Type": upload.type }),
  };
  const connection = connect ? { createConnection: connect } : { agent: false, ...(socketPath ? { socketPath } : {}) };
  const sent = send(new URL(path, origin), { method, headers, ...connection, ...(signal ? { signal } : {}) });
  const response = Promise.withResolvers<IncomingMessage>();
  let unreadable: unknown;
  sent.once("response", response.resolve);
  sent.on("error", (error) => response.reject(unreadable ?? unreachable(error, server)));
  if (upload === undefined) sent.end();
  else {
    const content = failing(upload.content, (error) => (unreadable = error));
    // An early response of the server ends the upload. That is no failure: the response reports the
    // outcome.
    pipeline(content, sent).catch((error) => response.reject(unreadable ?? unreachable(error, server)));
  }
  const incoming = await response.promise;
  // The reader of the body reports errors. Without a reader, a broken response is ignored.
  incoming.on("error", () => undefined);
  const broken = (error: unknown) => unreadable ?? new Error(`The server's response broke off: ${reasonOf(error)}`);
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    body: failing(incoming, (error) => broken(error)),
    late: () => lateOf(incoming),
  };

  function unreachable(error: Error, { origin: { origin }, source }: Server): Error {
    const where = socketPath ?? origin;
    return new Error(`No server responds at ${where} (from ${source}): ${error.message || reasonOf(error)}`);
  }
}

/** Returns the error text of an unsuccessful response. */
export async function failureText({ headers, body }: RpcResponse): Promise<string> {
  const content = await text(body);
  if (!String(headers["content-type"]).startsWith("application/json")) return content.trim();
  try {
    return String((JSON.parse(content) as { Message: unknown }).Message);
  } catch {
    return content.trim();
  }
}

function lateOf({ trailers }: IncomingMessage): string | undefined {
  const message = trailers["x-stream-error"];
  return message === undefined ? undefined : Buffer.from(String(message), "latin1").toString("utf8");
}

/** Yields the same values, and converts errors with `meant`. */
async function* failing<T>(content: AsyncIterable<T>, meant: (error: unknown) => unknown): AsyncGenerator<T> {
  try {
    yield* content;
  } catch (error) {
    throw meant(error);
  }
}
