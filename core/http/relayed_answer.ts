/** An answer of another server on its way to the client, as it comes. */
import { Readable } from "node:stream";
import type { HttpEvent, ResponseFields } from "../types.ts";
import { type IncomingMessage, STATUS_CODES } from "../util/node_http.ts";
import { INTERNAL_ERROR } from "./http2.ts";
import { trailersOf, wholeBody } from "./relay.ts";
import { headerTable, mayTrail, printable } from "./relay_fields.ts";

/** Answers without a body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * What a handler returns for it. Where it breaks off, so does the answer to the client: nobody shall take a part for the whole.
 *
 * @param fields that go on, as a flat list
 * @param failed hears why it broke off
 */
export function relayedAnswer(
  event: HttpEvent,
  incoming: IncomingMessage,
  fields: readonly string[],
  failed: (error: Error) => void,
): ResponseFields {
  const { request, response } = event;
  const { statusCode = 502, statusMessage = "", headers } = incoming;
  const isOwnPhrase =
    statusMessage !== STATUS_CODES[statusCode] && statusMessage !== "" && printable.test(statusMessage);
  const head = { status_code: statusCode, headers: headerTable(fields), ...(isOwnPhrase && { status: statusMessage }) };
  if (request.method === "HEAD" || bodiless.has(statusCode)) {
    incoming.on("error", () => undefined);
    // Whatever follows a 205 is none of the answer.
    if (statusCode === 205) incoming.destroy();
    else incoming.resume();
    return { ...head, body: Readable.from([]) };
  }
  const { errored } = incoming;
  const source = errored === null ? incoming : brokenBy(errored);
  source.once("error", (error) => {
    if (response.finished) return;
    failed(error);
    cut(event);
  });
  const body = wholeBody(incoming, request.method) ?? source;
  const { trailer } = headers;
  if (trailer === undefined) return { ...head, body };
  response.trailer_names = trailer
    .split(",")
    .map((name) => name.trim())
    .filter((name) => mayTrail(name));
  const trailers = () =>
    Object.fromEntries(Object.entries(trailersOf(incoming)).filter(([name, value]) => mayTrail(name, value)));
  return { ...head, body, trailers };
}

/** Of an answer that has broken off already, which is told to whoever listened then: it does so again when it is read. */
const brokenBy = (error: Error): Readable =>
  new Readable({
    read() {
      this.destroy(error);
    },
  });

/** Ends the connection, or the stream of HTTP/2, as one that is not complete. */
function cut({ response: { raw } }: HttpEvent): void {
  if ("stream" in raw) raw.stream?.close(INTERNAL_ERROR);
  else raw.destroy();
}
