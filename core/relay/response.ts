/** A response of another server, process or worker on its way to the client. */
import { Readable } from "node:stream";
import type { HttpEvent, ResponseFields } from "../types.ts";
import { headerOf, isFieldValue } from "../util/header_fields.ts";
import { INTERNAL_ERROR } from "../util/http2.ts";
import { type IncomingMessage, STATUS_CODES } from "../util/node_http.ts";
import { foldedName, headerTable, mayTrail } from "./fields.ts";
import type { LinkedBody } from "./linked_body.ts";
import { textOrBytes, trailersOf, wholeBody } from "./message.ts";
import type { LinkedResponse } from "./request_link.ts";

/** Statuses of responses without a body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

export interface RelayOptions {
  /** Folded names of trailers that are not forwarded. */
  readonly withheld?: { has(folded: string): boolean };
  /** Whether the response is of this server, so that every trailer is forwarded. Default false. */
  readonly isOwn?: boolean;
}

type Head = Pick<ResponseFields, "status_code" | "headers" | "status">;

function headOf(statusCode: number, statusMessage: string, fields: readonly string[]): Head {
  const isOwnPhrase = statusMessage !== STATUS_CODES[statusCode] && statusMessage !== "" && isFieldValue(statusMessage);
  return { status_code: statusCode, headers: headerTable(fields), ...(isOwnPhrase && { status: statusMessage }) };
}

/** Returns the result of a handler that sends on a response which has arrived in one piece. */
export function relayWhole(
  { statusCode, statusMessage }: { readonly statusCode: number; readonly statusMessage: string },
  fields: readonly string[],
  body: Buffer,
): ResponseFields {
  const head = headOf(statusCode, statusMessage, fields);
  return { ...head, body: textOrBytes(body, head.headers?.content_type !== undefined) };
}

/**
 * Returns the result of a handler that sends the response on. If it breaks off, the response to the
 * client is cut as well, so that nobody takes a part for the whole.
 *
 * @param fields the header fields to send, as a flat list
 * @param failed called with the reason if the response breaks off
 */
export function relayResponse(
  event: HttpEvent,
  incoming: IncomingMessage,
  fields: readonly string[],
  failed: (error: Error) => void,
  { withheld, isOwn = false }: RelayOptions = {},
): ResponseFields {
  const { method } = event.request;
  const { statusCode = 502, statusMessage = "", headers } = incoming;
  const head = headOf(statusCode, statusMessage, fields);
  if (method === "HEAD" || bodiless.has(statusCode)) {
    incoming.on("error", () => undefined);
    // Bytes after a 205 do not belong to the response.
    if (statusCode === 205) incoming.destroy();
    else incoming.resume();
    return { ...head, body: Readable.from([]) };
  }
  const { errored } = incoming;
  const source = errored === null ? incoming : brokenBy(errored);
  source.once("error", (error) => breakOff(event, error, failed));
  const body = wholeBody(incoming, method) ?? source;
  const isForwarded = (name: string, value?: string) =>
    isOwn || (mayTrail(name, value) && withheld?.has(foldedName(name)) !== true);
  return { ...head, body, ...trailersFor(event, headers.trailer, incoming, isForwarded) };
}

/**
 * Does the same for a response of a worker, whose body comes in pieces of which the memory is used
 * again.
 */
export function relayLinked(
  event: HttpEvent,
  { statusCode, statusMessage, rawHeaders, body }: LinkedResponse & { readonly body: LinkedBody },
  fields: readonly string[],
  failed: (error: Error) => void,
): ResponseFields {
  const head = headOf(statusCode, statusMessage, fields);
  if (event.request.method === "HEAD" || bodiless.has(statusCode)) {
    body.drop();
    return { ...head, body: Readable.from([]) };
  }
  body.whenFailed((error) => breakOff(event, error, failed));
  return { ...head, body, ...trailersFor(event, headerOf(rawHeaders, "trailer"), body, () => true) };
}

function breakOff(event: HttpEvent, error: Error, failed: (error: Error) => void): void {
  if (event.response.finished) return;
  failed(error);
  cut(event);
}

/** Announces the trailers that `Trailer` names, and returns those that are sent after the body. */
function trailersFor(
  { response }: HttpEvent,
  announced: string | undefined,
  body: { readonly rawTrailers: readonly string[] },
  isForwarded: (name: string, value?: string) => boolean,
): Pick<ResponseFields, "trailers"> {
  if (announced === undefined) return {};
  response.trailer_names = announced
    .split(",")
    .map((name) => name.trim())
    .filter((name) => isForwarded(name));
  return {
    trailers: () => Object.fromEntries(trailersOf(body).filter(([name, value]) => isForwarded(name, value))),
  };
}

/**
 * Returns a body that breaks off when it is read, for a response that has broken off before anybody
 * listened.
 */
const brokenBy = (error: Error): Readable =>
  new Readable({
    read() {
      this.destroy(error);
    },
  });

/**
 * Ends the connection, or the stream of HTTP/2, so that the client sees that the response is not
 * complete.
 */
function cut({ response: { raw } }: HttpEvent): void {
  if ("stream" in raw) raw.stream?.close(INTERNAL_ERROR);
  else raw.destroy();
}
