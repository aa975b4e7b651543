/** The handlers of an app: forward each request, and relay the response of the upstream. */
import { faultOf, httpMethods, joinTunnels, RelayFault, relayResponse } from "../../core/http/index.ts";
import type { HandlerResult, HttpEvent, WebSocketEvent } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import { hopsLeft, responseFields } from "./fields.ts";
import { type ForwardDeps, ProxiedRequest, type Received } from "./forward.ts";
import { clientLocation } from "./paths.ts";

/** Milliseconds of silence after which a half-closed websocket ends. */
const MAX_HALF_OPEN_MS = 5000;

/** The handler of an app's routes. */
export async function handle(
  event: HttpEvent,
  rest: string,
  app: ProxiedApp,
  deps: ForwardDeps,
): Promise<HandlerResult> {
  if (hopsLeft(event.request) === 0) return respondHere(event);
  const proxied = new ProxiedRequest(event, app, deps, false);
  const received = await proxied.forward(rest);
  return typeof received === "object" ? respond(proxied, received) : (received ?? true);
}

/**
 * Responds to a request that may not be forwarded. A response to TRACE would show pages the cookies
 * that they may not see.
 */
function respondHere({ request, response }: HttpEvent): HandlerResult {
  if (request.method === "TRACE") return 501;
  response.headers.allow = httpMethods.join(", ");
  return "";
}

/** The handler of an app's websockets. */
export async function upgrade(
  event: WebSocketEvent,
  rest: string,
  app: ProxiedApp,
  deps: ForwardDeps,
): Promise<HandlerResult> {
  const proxied = new ProxiedRequest(event, app, deps, true);
  const received = await proxied.forward(rest);
  if (typeof received !== "object") return received ?? true;
  const { incoming, tunnel: server } = received;
  if (server === undefined) return respond(proxied, received);
  const fields = fieldsOf(app, received);
  if (event.response.finished || fields === undefined) {
    server.socket.destroy();
    return 502;
  }
  const client = event.tunnel();
  const end = () => {
    client.socket.destroy();
    server.socket.destroy();
  };
  // Traffic is relayed between both connections, so if one is silent, the other is too.
  server.socket.setTimeout(app.settings.idle_timeout * 1000, end);
  client.socket.once("end", () => server.socket.setTimeout(MAX_HALF_OPEN_MS));
  event.request.leaving.addEventListener("abort", end, { once: true });
  joinTunnels(client, server, ["Connection", "Upgrade", "Upgrade", "websocket", ...fields]);
  incoming.resume();
  return true;
}

function respond(proxied: ProxiedRequest, received: Received): HandlerResult {
  const { event, app } = proxied;
  const { incoming, upstream } = received;
  const fields = fieldsOf(app, received);
  if (fields === undefined) {
    incoming.destroy();
    const fault = new RelayFault("bad_answer", "its response has a header that cannot be forwarded");
    proxied.failed(upstream, fault);
    return fault.status;
  }
  const failed = (error: Error) => proxied.failed(upstream, faultOf(error, true));
  return relayResponse(event, incoming, fields, failed, { withheld: app.settings.responseHeaders });
}

function fieldsOf({ settings }: ProxiedApp, { incoming, upstream: { address }, path }: Received): string[] | undefined {
  return responseFields(incoming, settings, (url) => clientLocation(url, address, path.base, settings.path));
}
