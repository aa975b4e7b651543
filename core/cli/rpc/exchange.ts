/**
 * One request and its answer, both as they flow. `net.http` is for modules and hides what is needed here: trailers, and
 * answers that begin while the request is still being sent.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { reasonOf } from "../../util/errors.ts";
import { request as plainRequest } from "../../util/node_http.ts";
import { packageVersion } from "../../util/package.ts";
import type { Server } from "./server.ts";

export interface Upload {
  /** Content-Type. */
  readonly type: string;
  readonly content: AsyncIterable<Uint8Array>;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Throws when it breaks off, with what could not be read of an upload where that is why. */
  readonly body: AsyncIterable<Buffer>;
  /** The failure that came after the values; known when the body has been read. */
  late(): string | undefined;
}

/** @throws Error when nobody answers, or when what is to be sent cannot be read */
export async function exchange(
  server: Server,
  method: "GET" | "POST",
  path: string,
  { upload, signal }: { readonly upload?: Upload; readonly signal?: AbortSignal } = {},
): Promise<Answered> {
  const { origin, socketPath, connect, authorization } = server;
  const send = origin.protocol === "https:" ? process.getBuiltinModule("node:https").request : plainRequest;
  const headers = {
    "User-Agent": `modhost/${packageVersion()}`,
    // Errors of the host are pages otherwise.
    Accept: "text/plain, */*;q=0.5",
    ...(authorization === undefined ? {} : { Authorization: authorization }),
    ...(upload === undefined ? {} : { "Content-Type": upload.type }),
  };
  const place = connect ? { createConnection: connect } : { agent: false, ...(socketPath ? { socketPath } : {}) };
  const sent = send(new URL(path, origin), { method, headers, ...place, ...(signal ? { signal } : {}) });
  const answer = Promise.withResolvers<IncomingMessage>();
  let unreadable: unknown;
  sent.once("response", answer.resolve);
  sent.on("error", (error) => answer.reject(unreadable ?? unreachable(error, server)));
  if (upload === undefined) sent.end();
  else {
    const content = failing(upload.content, (error) => (unreadable = error));
    // Broken off by the server's early answer, it is no failure: the answer tells.
    pipeline(content, sent).catch((error) => answer.reject(unreadable ?? unreachable(error, server)));
  }
  const response = await answer.promise;
  // Heard where it is read; one that is not read may break off.
  response.on("error", () => undefined);
  const broken = (error: unknown) => unreadable ?? new Error(`The answer of the server broke off: ${reasonOf(error)}`);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: failing(response, (error) => broken(error)),
    late: () => lateOf(response),
  };

  function unreachable(error: Error, { origin: { origin }, source }: Server): Error {
    const where = socketPath ?? origin;
    return new Error(`No server answers at ${where} (from ${source}): ${error.message || reasonOf(error)}`);
  }
}

/** The text of an answer that is no success. */
export async function failureText({ headers, body }: Answered): Promise<string> {
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

/** The same, but what it throws is what `meant` makes of it. */
async function* failing<T>(content: AsyncIterable<T>, meant: (error: unknown) => unknown): AsyncGenerator<T> {
  try {
    yield* content;
  } catch (error) {
    throw meant(error);
  }
}
