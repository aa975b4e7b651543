/** Forwards one request to another process of the server, and relays its response. */
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { whenHalfClosed } from "../http/connection/lingering.ts";
import { within } from "../relay/channel.ts";
import { RelayFault } from "../relay/fault.ts";
import { hasBody, innerResponseFields } from "../relay/fields.ts";
import { relayEarlyHints } from "../relay/interim.ts";
import { trailersOf, wholeBody } from "../relay/message.ts";
import { OutgoingRequest } from "../relay/outgoing_request.ts";
import type { Tunnel } from "../relay/tunnel.ts";
import { sendUnavailable } from "../relay/unavailable.ts";
import type { NodeRequest, NodeResponse } from "../util/node_messages.ts";

/** Milliseconds that a request waits for a process to be replaced. */
const MAX_WAIT_MS = 15_000;

const CONTINUE = 100;

/** Codes of errors after which nothing of a request has reached the other process. */
const unreached: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOENT", "EAGAIN"]);

export interface ForwardedRequestDeps {
  /** Opens the request to the process that serves now. */
  open(): ClientRequest;
  /** Resolves when the processes that serve have changed. */
  changed(): Promise<void>;
  /**
   * Called when the process accepts an upgrade; undefined for a request without one.
   */
  readonly upgraded: ((server: Tunnel, fields: readonly string[]) => void) | undefined;
  /** Whether the client's connection is closed after the response. */
  readonly isLast: boolean;
}

/** Forwards the request until a process has responded or the client has left. */
export async function forwardRequest(
  request: NodeRequest,
  response: NodeResponse,
  { open, changed, upgraded, isLast }: ForwardedRequestDeps,
): Promise<void> {
  const began = performance.now();
  let outgoing: OutgoingRequest;
  response.once("close", () => outgoing.abort());
  whenHalfClosed(request, response, () => outgoing.endConnection());
  for (;;) {
    outgoing = new OutgoingRequest(open(), {
      body: hasBody(request) ? request : undefined,
      trailers: () => trailersOf(request as IncomingMessage),
      isUpgrade: upgraded !== undefined,
      informed(status, rawHeaders) {
        if (status === CONTINUE) (response as ServerResponse).writeContinue();
        else relayEarlyHints(request, response, status, rawHeaders);
      },
    });
    try {
      const { incoming, tunnel } = await outgoing.response;
      if (tunnel === undefined) respond(incoming, response as ServerResponse, isLast);
      else upgraded?.(tunnel, incoming.rawHeaders);
      return;
    } catch (error) {
      if (response.destroyed || response.writableEnded) return;
      const left = MAX_WAIT_MS - (performance.now() - began);
      if (!(await mayRetry(outgoing, error, left, changed))) {
        sendUnavailable(response as ServerResponse);
        return;
      }
      if (response.destroyed) return;
    }
  }
}

async function mayRetry(
  { isReused, hasBegunBody }: OutgoingRequest,
  error: unknown,
  left: number,
  changed: () => Promise<void>,
): Promise<boolean> {
  if (!(error instanceof RelayFault) || hasBegunBody) return false;
  // The other process closes unused connections, perhaps just as a request is sent on one.
  if (isReused && error.reason === "lost") return true;
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (!unreached.has(code) || left <= 0) return false;
  return within(left / 1000, changed(), "no process has replaced it").then(
    () => true,
    () => false,
  );
}

/** Relays the response as it arrives. */
function respond(incoming: IncomingMessage, response: ServerResponse, isLast: boolean): void {
  const { statusCode = 502, statusMessage, rawHeaders } = incoming;
  const isHttp1 = response.req?.httpVersionMajor === 1;
  const fields = innerResponseFields(rawHeaders);
  for (let at = 0; at < fields.length; at += 2) response.appendHeader(fields[at] as string, fields[at + 1] as string);
  if (isHttp1 && isLast) response.setHeader("Connection", "close");
  response.statusCode = statusCode;
  if (isHttp1 && statusMessage !== undefined) response.statusMessage = statusMessage;
  const whole = wholeBody(incoming, response.req?.method ?? "GET");
  if (whole !== undefined) {
    response.end(whole);
    return;
  }
  response.flushHeaders();
  incoming.once("end", () => {
    if (incoming.rawTrailers.length > 0) response.addTrailers(trailersOf(incoming));
  });
  pipeline(incoming, response, () => undefined);
}
