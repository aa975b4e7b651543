/** Answers of upstreams on their way to the client. */
import { STATUS_CODES } from "node:http";
import { constants } from "node:http2";
import { Readable } from "node:stream";
import { joinSockets, trailersOf, wholeBody } from "../../core/http/index.ts";
import type { HandlerResult, HttpEvent, WebSocketEvent } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import { faultOf, UpstreamFault } from "./fault.ts";
import { answerFields, headerTable, mayTrail, printable } from "./fields.ts";
import { type Asked, ask, type ForwardDeps, failedBy, type Received } from "./forward.ts";
import { clientLocation } from "./paths.ts";

/** Milliseconds of silence after which an upstream has nothing more to say to a client that has ended its side. */
const MAX_HALF_OPEN_MS = 5000;

/** Answers without a body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/** The handler of an app's routes. */
export async function handle(
  event: HttpEvent,
  rest: string,
  app: ProxiedApp,
  deps: ForwardDeps,
): Promise<HandlerResult> {
  const asked: Asked = { event, app, rest, isUpgrade: false };
  const received = await ask(asked, deps);
  return typeof received === "object" ? answerWith(asked, received, deps) : (received ?? true);
}

/** The handler of an app's websockets: once the upstream accepts, the two connections are one. */
export async function upgrade(
  event: WebSocketEvent,
  rest: string,
  app: ProxiedApp,
  deps: ForwardDeps,
): Promise<HandlerResult> {
  const asked: Asked = { event, app, rest, isUpgrade: true };
  const received = await ask(asked, deps);
  if (typeof received !== "object") return received ?? true;
  const { incoming, tunnel: far } = received;
  if (far === undefined) return answerWith(asked, received, deps);
  const fields = fieldsOf(asked, received);
  if (event.response.finished || fields === undefined) {
    far.socket.destroy();
    return 502;
  }
  // From here on the two connections end each other, with what is still on its way.
  event.response.on_destroy = undefined;
  const near = event.tunnel();
  const lines = [`HTTP/1.1 101 ${STATUS_CODES[101]}`, "Connection: Upgrade", "Upgrade: websocket"];
  for (let at = 0; at < fields.length; at += 2) lines.push(`${fields[at]}: ${fields[at + 1]}`);
  near.socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (far.head.length > 0) near.socket.write(far.head);
  if (near.head.length > 0) far.socket.write(near.head);
  const end = () => {
    near.socket.destroy();
    far.socket.destroy();
  };
  // What moves, moves on both: silence on one is silence.
  far.socket.setTimeout(app.settings.idle_timeout * 1000, end);
  near.socket.once("end", () => far.socket.setTimeout(MAX_HALF_OPEN_MS));
  event.request.leaving.addEventListener("abort", end, { once: true });
  joinSockets(near.socket, far.socket);
  incoming.resume();
  return true;
}

/** Sends an answer as it comes. */
function answerWith(asked: Asked, received: Received, deps: ForwardDeps): HandlerResult {
  const { event } = asked;
  const { request, response } = event;
  const { incoming, upstream } = received;
  const { statusCode = 502, statusMessage = "", headers } = incoming;
  const fields = fieldsOf(asked, received);
  if (fields === undefined) {
    incoming.destroy();
    const fault = new UpstreamFault("bad_answer", "its answer has a header that cannot be sent");
    failedBy(asked, deps, upstream, fault);
    return fault.status;
  }
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
  incoming.once("error", (error) => {
    if (response.finished) return;
    failedBy(asked, deps, upstream, faultOf(error, true));
    // The client shall not take a part for the whole.
    cut(event);
  });
  const body = wholeBody(incoming, request.method) ?? incoming;
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

function fieldsOf(
  { app: { settings } }: Asked,
  { incoming, upstream: { place }, path }: Received,
): string[] | undefined {
  return answerFields(incoming, settings, (url) => clientLocation(url, place, path.base, settings.path));
}

/** Ends the connection, or the stream of HTTP/2, as one that is not complete. */
function cut({ response: { raw } }: HttpEvent): void {
  if ("stream" in raw) raw.stream?.close(constants.NGHTTP2_INTERNAL_ERROR);
  else raw.destroy();
}
