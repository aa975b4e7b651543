import type { EventStream, EventStreamOptions, HttpEvent, ResponseFields, ServerEvent } from "../types.ts";
import { EventBody } from "./event_body.ts";
import { commentText, eventText } from "./event_text.ts";

type Events = AsyncIterable<ServerEvent | string>;

const headers = {
  content_type: "text/event-stream",
  cache_control: "no-store",
  // Proxies that collect answers before they pass them on let this one through.
  x_accel_buffering: "no",
};

/**
 * Answers with server-sent events (`text/event-stream`): those that are sent on the stream given back, or those of an
 * async iterable, for a handler to return. The stream ends with its client, and when the module leaves.
 */
export function event_stream(event: HttpEvent, options?: EventStreamOptions): EventStream;
export function event_stream(events: Events, options?: EventStreamOptions): ResponseFields;
export function event_stream(given: HttpEvent | Events, options?: EventStreamOptions): EventStream | ResponseFields {
  if (Symbol.asyncIterator in given) return { headers: { ...headers }, body: new EventBody(options, given) };
  const { request, response } = given;
  const body = new EventBody(options);
  Object.assign(response.headers, headers);
  response.send(body);
  return {
    last_event_id: utf8(request.headers.last_event_id),
    signal: body.ended,
    send: (event) => body.put(eventText(event)),
    comment: (text = "") => body.put(commentText(text)),
    close: () => body.close(),
  };
}

/** Node reads headers as Latin-1, browsers send the id as UTF-8. */
function utf8(value: string | undefined): string | undefined {
  return value ? Buffer.from(value, "latin1").toString("utf8") : undefined;
}
