/** Forwards a request to one upstream after the other until one responds. */
import {
  announcedBody,
  type Framing,
  framingOf,
  isLooping,
  OutgoingRequest,
  type Received as ReceivedResponse,
  RelayFault,
  relayEarlyHints,
} from "../../core/http/index.ts";
import type { HttpEvent, Module } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import { requestFields, requestTrailers } from "./fields.ts";
import type { Family } from "./forwarded.ts";
import type { ProxyMetrics } from "./metrics.ts";
import { type TargetPath, targetPath } from "./paths.ts";
import { Upstream } from "./upstream.ts";

/** Methods that may be sent twice (RFC 9110, 9.2.2). */
const idempotent: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]);
const LOOP_DETECTED = 508;

/** The highest status of a response (RFC 9110, 15). */
const MAX_STATUS = 599;

/** Bytes of the largest head of a response. */
const MAX_HEADER_SIZE = 64 * 1024;

export interface ForwardDeps {
  readonly module: Pick<Module, "log" | "now">;
  readonly metrics: ProxyMetrics;
  /** The family of headers by which trusted proxies tell the client. */
  readonly family: () => Family;
}

/** A request for an app of the proxy. */
export interface ProxiedRequest {
  readonly event: HttpEvent;
  readonly app: ProxiedApp;
  /** The decoded path below the app. */
  readonly rest: string;
  /** Whether the request is for a websocket. */
  readonly isUpgrade: boolean;
}

/** A response, and the upstream that has sent it. */
export interface Received extends ReceivedResponse {
  readonly upstream: Upstream;
  readonly path: TargetPath;
}

/**
 * Sends the request to upstreams until one responds. Resolves to a status if none responds or none
 * is available, and to undefined if the client has left. Rejects with the error of the body on its
 * way from the client.
 */
export async function forward(proxied: ProxiedRequest, deps: ForwardDeps): Promise<Received | number | undefined> {
  const { event, app, rest } = proxied;
  const { request } = event;
  const { settings } = app;
  const { module, metrics } = deps;
  const path = targetPath(request, rest, settings.path);
  if (path === undefined) return 400;
  if (isLooping(request)) {
    module.log.warn("%s: request %s loops: an upstream forwards it back to this server", app.name, request.id);
    return LOOP_DETECTED;
  }
  const framing = framingOf(request);
  if (settings.max_body > 0 && Number(framing.length ?? 0) > settings.max_body) return 413;
  const began = performance.now();
  const until = module.now() + settings.retry_time;
  const failed = new Set<Upstream>();
  let current: OutgoingRequest | undefined;
  // The client has left, or the response is complete and the rest of the request is of no use.
  event.response.raw.once("close", () => current?.abort());
  let last: RelayFault | undefined;
  /**
   * An upstream that gets the request again on a new connection, because an idle one turned out to
   * be closed.
   */
  let stale: Upstream | undefined;
  for (let attempts = 0; ; attempts += 1) {
    const upstream = stale ?? app.choose(module.now(), request.ip, failed);
    if (!(upstream instanceof Upstream)) return last === undefined ? unavailable(proxied, deps, upstream) : last.status;
    if (attempts > 0) metrics.retried(app, upstream);
    const attempt = open(proxied, deps, { path, framing }, upstream, stale !== undefined);
    current = attempt;
    try {
      const received = await attempt.response;
      const status = received.incoming.statusCode ?? 502;
      if (status > MAX_STATUS) {
        received.incoming.destroy();
        throw new RelayFault("bad_answer", `it answered with the status ${status}`);
      }
      metrics.responded(app, upstream, status, (performance.now() - began) / 1000);
      return { ...received, upstream, path };
    } catch (error) {
      if (event.response.finished) return undefined;
      if (!(error instanceof RelayFault)) throw error;
      const wasIdle = attempt.isReused && error.reason === "lost";
      const isHarmless = !attempt.hasBegunBody && (!attempt.isConnected || idempotent.has(request.method));
      stale = wasIdle && isHarmless && stale === undefined ? upstream : undefined;
      if (stale !== undefined) continue;
      failedBy(proxied, deps, upstream, error);
      if (!isHarmless || failed.size >= settings.retries || module.now() >= until) return error.status;
      failed.add(upstream);
      last = error;
    }
  }
}

/** Opens a request to an upstream, on a new connection if it has to be fresh. */
function open(
  { event, app: { settings }, isUpgrade }: ProxiedRequest,
  { family }: ForwardDeps,
  { path, framing }: { readonly path: TargetPath; readonly framing: Framing },
  upstream: Upstream,
  isFresh: boolean,
): OutgoingRequest {
  const { request, response } = event;
  const { address } = upstream;
  const fields = requestFields(request, {
    ...{ settings, address, framing, isUpgrade },
    family: family(),
    prefix: path.hidden,
  });
  const opened = upstream.open(
    {
      method: request.method,
      path: `${address.basePath}${path.target}`,
      headers: fields as never,
      maxHeaderSize: MAX_HEADER_SIZE,
    },
    isFresh,
  );
  upstream.begin();
  const { connect_timeout: connect, response_timeout, idle_timeout: idle, max_body } = settings;
  const limit = max_body > 0 ? max_body : undefined;
  return new OutgoingRequest(opened, {
    body: framing.hasBody ? announcedBody(request.body_stream, framing, limit) : undefined,
    trailers: () => requestTrailers(request, settings),
    expects: framing.expects,
    isUpgrade,
    timeouts: { connect, response: response_timeout, idle },
    informed: (status, rawHeaders) => relayEarlyHints(request.raw, response.raw, status, rawHeaders),
    ended: () => upstream.end(),
  });
}

/** Counts and logs that an upstream has failed a request. */
export function failedBy(
  { event, app }: ProxiedRequest,
  { module, metrics }: ForwardDeps,
  upstream: Upstream,
  fault: RelayFault,
): void {
  const { method, url, id } = event.request;
  metrics.failed(app, upstream, fault.reason);
  module.log.warn(
    "%s: the upstream %s failed %s %s (request %s): %s",
    app.name,
    upstream.name,
    method,
    url.raw_path,
    id,
    fault.message,
  );
  if (!app.failed(upstream, module.now(), fault.message)) return;
  const { fail_after, fail_time } = app.settings;
  module.log.warn(
    "%s: the upstream %s gets no requests for %d s, after %d failures",
    app.name,
    upstream.name,
    fail_time,
    fail_after,
  );
}

function unavailable(
  { event, app }: ProxiedRequest,
  { module, metrics }: ForwardDeps,
  { reason, retryAfter }: { readonly reason: string; readonly retryAfter: number },
): number {
  const { method, url, id } = event.request;
  metrics.unavailable(app);
  const names = app.upstreams.map(({ name }) => name).join(", ");
  module.log.warn(
    "%s: no upstream for %s %s (request %s): of %s %s",
    app.name,
    method,
    url.raw_path,
    id,
    names,
    reason,
  );
  event.response.headers.retry_after = String(retryAfter);
  return 503;
}
