/**
 * Sends one request to the HTTP service of a peer, on its own stream, and relays the response as it
 * arrives.
 */
import type { IncomingMessage } from "node:http";
import {
  announcedBody,
  framingOf,
  OutgoingRequest,
  passedFields,
  relayResponse,
  responseFieldsOf,
  viaOf,
} from "../../../core/http/index.ts";
import type { HttpEvent, HttpRequest, ResponseFields } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayDeps } from "../gateway.ts";
import type { GatewaySettings } from "../settings.ts";
import type { RequestedService } from "./requested_service.ts";
import { type StreamToPeer, Watch } from "./watch.ts";

// An import of `node:http` makes Node load its fetch client.
const http = process.getBuiltinModule("node:http");

/** Maximum size of the head of a response in bytes. */
const MAX_HEADER_SIZE = 64 * 1024;

/**
 * Milliseconds that a peer has to end its side after its response, as the request asked it to do.
 */
const MAX_LINGER_MS = 1000;

/** Range of valid response statuses (RFC 9110, 15). */
const MIN_STATUS = 200;
const MAX_STATUS = 599;

/**
 * Headers that describe the client to servers behind proxies. They are not forwarded, because the
 * client may have written them.
 */
const forwarding = /^(forwarded|x-forwarded-.*|x-real-ip)$/;

/**
 * Headers that would affect everything at the same host and port, and not only this peer's pages.
 */
const originFields: ReadonlySet<string> = new Set([
  "clear-site-data",
  "public-key-pins",
  "service-worker-allowed",
  "strict-transport-security",
]);

interface PeerRequest extends Pick<GatewayDeps, "node" | "log"> {
  readonly event: HttpEvent;
  readonly service: RequestedService;
  readonly settings: Pick<GatewaySettings, "stallTime" | "totalTime">;
}

/** @throws {Refusal} 502 if the peer does not respond, 504 if it does not respond in time */
export async function askPeer({ event, node, settings, service, log }: PeerRequest): Promise<ResponseFields> {
  const { request } = event;
  const { peer, peerText, protocol } = service;
  const late = new AbortController();
  const signal = AbortSignal.any([request.signal, late.signal]);
  const watch = new Watch(settings, () => late.abort(new Error("it took too long")));
  let stream: StreamToPeer | undefined;
  try {
    const { p2p } = await node.lowLevel.network();
    stream = await p2p.open(peer, protocol, signal);
    watch.follow(stream);
    const incoming = await send(request, service, { stream, watch });
    const { statusCode = 0 } = incoming;
    const fields = responseFieldsOf(incoming, { withheld: originFields });
    if (fields === undefined || statusCode < MIN_STATUS || statusCode > MAX_STATUS) {
      throw new Error(`its response cannot be relayed: status ${statusCode}`);
    }
    return relayResponse(event, incoming, fields, (error) =>
      log.debug("request %s: the response of %s broke off: %s", request.id, peerText, error.message),
    );
  } catch (cause) {
    watch.end();
    stream?.destroy();
    log.debug("request %s: %s of %s did not respond: %s", request.id, protocol, peerText, (cause as Error).message);
    if (late.signal.aborted) throw new Refusal(504, `${peerText} sent no response in time`, { cause });
    throw new Refusal(502, `${peerText} did not respond at ${protocol}`, { cause });
  }
}

interface Carrier {
  readonly stream: StreamToPeer;
  readonly watch: Watch;
}

/** Rejects with the reason why the peer has not responded. */
async function send(
  request: HttpRequest,
  { peerText, target }: RequestedService,
  { stream, watch }: Carrier,
): Promise<IncomingMessage> {
  const framing = framingOf(request);
  const fields = [
    ...["Host", peerText],
    ...passedFields(request, (key) => forwarding.test(key)),
    ...["X-Forwarded-For", request.ip || "unknown"],
    ...["Via", viaOf(request)],
    ...["Connection", "close"],
  ];
  if (framing.length !== undefined) fields.push("Content-Length", framing.length);
  else if (framing.hasBody) fields.push("Transfer-Encoding", "chunked");
  const opened = http.request({
    createConnection: () => stream,
    method: request.method,
    path: target,
    headers: fields as never,
    setHost: false,
    maxHeaderSize: MAX_HEADER_SIZE,
  });
  // The peer is ready for more of the body, but the client sends none.
  watch.isForClient = () => !opened.writableEnded && !opened.writableNeedDrain;
  const body = framing.hasBody ? announcedBody(request.body_stream, framing) : undefined;
  const { incoming } = await new OutgoingRequest(opened, { body }).response;
  incoming.once("close", () => void setTimeout(() => stream.destroy(), MAX_LINGER_MS).unref());
  // A part of the response has arrived, but the client does not read it.
  watch.isForClient = () => incoming.readableLength > 0;
  return incoming;
}
