/** Answers of upstreams on their way to the client. */
import { joinSockets, relayedAnswer } from "../../core/http/index.ts";
import type { HandlerResult, HttpEvent, WebSocketEvent } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import { faultOf, UpstreamFault } from "./fault.ts";
import { answerFields } from "./fields.ts";
import { askUpstreams, type ForwardDeps, failedBy, type ProxiedRequest, type Received } from "./forward.ts";
import { clientLocation } from "./paths.ts";

// An import of `node:http` makes Node load its fetch client.
const { STATUS_CODES } = process.getBuiltinModule("node:http");

/** Milliseconds of silence after which an upstream has nothing more to say to a client that has ended its side. */
const MAX_HALF_OPEN_MS = 5000;

/** The handler of an app's routes. */
export async function handle(
  event: HttpEvent,
  rest: string,
  app: ProxiedApp,
  deps: ForwardDeps,
): Promise<HandlerResult> {
  const proxied: ProxiedRequest = { event, app, rest, isUpgrade: false };
  const received = await askUpstreams(proxied, deps);
  return typeof received === "object" ? answerWith(proxied, received, deps) : (received ?? true);
}

/** The handler of an app's websockets: once the upstream accepts, the two connections are one. */
export async function upgrade(
  event: WebSocketEvent,
  rest: string,
  app: ProxiedApp,
  deps: ForwardDeps,
): Promise<HandlerResult> {
  const proxied: ProxiedRequest = { event, app, rest, isUpgrade: true };
  const received = await askUpstreams(proxied, deps);
  if (typeof received !== "object") return received ?? true;
  const { incoming, tunnel: far } = received;
  if (far === undefined) return answerWith(proxied, received, deps);
  const fields = fieldsOf(proxied, received);
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
function answerWith(proxied: ProxiedRequest, received: Received, deps: ForwardDeps): HandlerResult {
  const { event } = proxied;
  const { incoming, upstream } = received;
  const fields = fieldsOf(proxied, received);
  if (fields === undefined) {
    incoming.destroy();
    const fault = new UpstreamFault("bad_answer", "its answer has a header that cannot be sent");
    failedBy(proxied, deps, upstream, fault);
    return fault.status;
  }
  return relayedAnswer(event, incoming, fields, (error) => failedBy(proxied, deps, upstream, faultOf(error, true)));
}

function fieldsOf(
  { app: { settings } }: ProxiedRequest,
  { incoming, upstream: { address }, path }: Received,
): string[] | undefined {
  return answerFields(incoming, settings, (url) => clientLocation(url, address, path.base, settings.path));
}
