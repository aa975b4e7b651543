import type { EventStream, EventStreamOptions, HttpEvent, ResponseFields, ServerEvent } from "../../types.ts";
import { EventBody } from "./body.ts";
import { commentText, eventText } from "./text.ts";

type Events = AsyncIterable<ServerEvent | string>;

const headers = {
  content_type: "text/event-stream",
  cache_control: "no-store",
  // Proxies that buffer responses pass this one on at once.
  x_accel_buffering: "no",
};

/**
 * Responds with server-sent events (`text/event-stream`). Given an event, it returns a stream to
 * send on; given an async iterable, it returns a response for a handler to return. The stream ends
 * when its client leaves and when the module is unloaded.
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
    last_event_id: utf8(request.header("last-event-id")),
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
