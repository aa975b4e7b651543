/** One request to the HTTP service of a peer, by a stream of its own, and the answer as it comes. */
import type { ClientRequest, IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { answerFieldsOf, framingOf, passedFields, relayedAnswer, viaOf } from "../../../core/http/index.ts";
import type { HttpEvent, HttpRequest, ResponseFields } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayDeps } from "../gateway.ts";
import type { GatewaySettings } from "../settings.ts";
import type { AskedService } from "./asked_service.ts";
import { type StreamToPeer, Watch } from "./watch.ts";

// An import of `node:http` makes Node load its fetch client.
const http = process.getBuiltinModule("node:http");

/** Largest head of an answer, in bytes. */
const MAX_HEADER_SIZE = 64 * 1024;

/** Milliseconds for a peer to end its side after its answer: it was asked to. */
const MAX_LINGER_MS = 1000;

/** Statuses of answers (RFC 9110, 15). */
const MIN_STATUS = 200;
const MAX_STATUS = 599;

/** Headers by which proxies tell who asks: of a client's own word nothing goes on. */
const forwarding = /^(forwarded|x[-_]forwarded[-_].*|x[-_]real[-_]ip)$/;

/** What would count for all that is served at the same host and port, and not for this peer alone. */
const originFields: ReadonlySet<string> = new Set([
  "clear-site-data",
  "public-key-pins",
  "service-worker-allowed",
  "strict-transport-security",
]);

interface PeerAsked extends Pick<GatewayDeps, "node" | "log"> {
  readonly event: HttpEvent;
  readonly service: AskedService;
  readonly settings: Pick<GatewaySettings, "stallTime" | "totalTime">;
}

/** @throws {Refusal} 502 where the peer gives no answer, 504 where it gives none in time */
export async function askPeer({ event, node, settings, service, log }: PeerAsked): Promise<ResponseFields> {
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
    const fields = answerFieldsOf(incoming, { withheld: originFields });
    if (fields === undefined || statusCode < MIN_STATUS || statusCode > MAX_STATUS) {
      throw new Error(`its answer cannot be passed on: status ${statusCode}`);
    }
    return relayedAnswer(event, incoming, fields, (error) =>
      log.debug("request %s: the answer of %s broke off: %s", request.id, peerText, error.message),
    );
  } catch (cause) {
    watch.end();
    stream?.destroy();
    log.debug("request %s: %s of %s gives no answer: %s", request.id, protocol, peerText, (cause as Error).message);
    if (late.signal.aborted) throw new Refusal(504, `${peerText} gave no answer in time`, { cause });
    throw new Refusal(502, `${peerText} gives no answer at ${protocol}`, { cause });
  }
}

interface Carrier {
  readonly stream: StreamToPeer;
  readonly watch: Watch;
}

/** Rejects with what kept it from being answered. */
function send(
  request: HttpRequest,
  { peerText, target }: AskedService,
  { stream, watch }: Carrier,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
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
  const outgoing: ClientRequest = http.request({
    createConnection: () => stream,
    method: request.method,
    path: target,
    headers: fields as never,
    setHost: false,
    maxHeaderSize: MAX_HEADER_SIZE,
  });
  // More of its body is taken, and none comes.
  watch.isForClient = () => !outgoing.writableEnded && !outgoing.writableNeedDrain;
  outgoing.once("response", (incoming) => {
    incoming.once("close", () => void setTimeout(() => stream.destroy(), MAX_LINGER_MS).unref());
    // A part of the answer is there, and is not taken.
    watch.isForClient = () => incoming.readableLength > 0;
    resolve(incoming);
  });
  outgoing.on("error", reject);
  outgoing.once("close", () => reject(new Error("it closed the stream without an answer")));
  // Its failure is that of the request, or nobody's, as after an answer that did not wait for all of it.
  if (framing.hasBody) pipeline(request.body_stream, outgoing).catch(() => undefined);
  else outgoing.end();
  return promise;
}
