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
import type { ProxiedApp, Unavailable } from "./app.ts";
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
  /** The family of headers by which trusted proxies report the client. */
  readonly family: () => Family;
}

/** A response, and the upstream that has sent it. */
export interface Received extends ReceivedResponse {
  readonly upstream: Upstream;
  readonly path: TargetPath;
}

/** A request for an app of the proxy. */
export class ProxiedRequest {
  readonly event: HttpEvent;
  readonly app: ProxiedApp;
  readonly #deps: ForwardDeps;
  readonly #isUpgrade: boolean;
  readonly #framing: Framing;
  readonly #began = performance.now();

  /** `isUpgrade`: whether the request is for a websocket. */
  constructor(event: HttpEvent, app: ProxiedApp, deps: ForwardDeps, isUpgrade: boolean) {
    this.event = event;
    this.app = app;
    this.#deps = deps;
    this.#isUpgrade = isUpgrade;
    this.#framing = framingOf(event.request);
  }

  /**
   * Sends the request to upstreams until one responds. `rest` is the decoded path below the app.
   * Resolves to a status if none responds or none is available, and to undefined if the client has
   * left. Rejects with the error of the body on its way from the client.
   */
  async forward(rest: string): Promise<Received | number | undefined> {
    const { event, app } = this;
    const { module } = this.#deps;
    const { max_body, retries, retry_time } = app.settings;
    const path = targetPath(event.request, rest, app.settings.path);
    if (path === undefined) return 400;
    if (isLooping(event.request)) {
      module.log.warn("%s: request %s loops: an upstream forwards it back to this server", app.name, event.request.id);
      return LOOP_DETECTED;
    }
    if (max_body > 0 && Number(this.#framing.length ?? 0) > max_body) return 413;
    const until = module.now() + retry_time;
    const failed = new Set<Upstream>();
    let current: OutgoingRequest | undefined;
    // The client has left, or the response is complete and the rest of the request is of no use.
    event.response.raw.once("close", () => current?.abort());
    let last: RelayFault | undefined;
    /**
     * An upstream that gets the request again on a new connection, because an idle one turned out
     * to be closed.
     */
    let stale: Upstream | undefined;
    for (let attempts = 0; ; attempts += 1) {
      const upstream = stale ?? app.choose(module.now(), event.request.ip, failed);
      if (!(upstream instanceof Upstream)) return last?.status ?? this.#unavailable(upstream);
      if (attempts > 0) upstream.counts.retries += 1;
      const attempt = this.#open(upstream, path, stale !== undefined);
      current = attempt;
      try {
        const received = await attempt.response;
        this.#responded(upstream, received);
        return { ...received, upstream, path };
      } catch (error) {
        if (event.response.finished) return undefined;
        if (!(error instanceof RelayFault)) throw error;
        const wasIdle = attempt.isReused && error.reason === "lost";
        const isHarmless = !attempt.hasBegunBody && (!attempt.isConnected || idempotent.has(event.request.method));
        stale = wasIdle && isHarmless && stale === undefined ? upstream : undefined;
        if (stale !== undefined) continue;
        this.failed(upstream, error);
        if (!isHarmless || failed.size >= retries || module.now() >= until) return error.status;
        failed.add(upstream);
        last = error;
      }
    }
  }

  /** Opens a request to an upstream, on a new connection if it has to be fresh. */
  #open(upstream: Upstream, path: TargetPath, isFresh: boolean): OutgoingRequest {
    const { request, response } = this.event;
    const { settings } = this.app;
    const { address } = upstream;
    const framing = this.#framing;
    const isUpgrade = this.#isUpgrade;
    const family = this.#deps.family();
    const fields = requestFields(request, { settings, address, framing, isUpgrade, family, prefix: path.hidden });
    const target = {
      method: request.method,
      path: `${address.basePath}${path.target}`,
      headers: fields as never,
      maxHeaderSize: MAX_HEADER_SIZE,
    };
    const opened = upstream.open(target, isFresh);
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

  /** Counts a response. @throws {RelayFault} for a status that HTTP does not have */
  #responded(upstream: Upstream, { incoming }: ReceivedResponse): void {
    const { statusCode = 502 } = incoming;
    if (statusCode > MAX_STATUS) {
      incoming.destroy();
      throw new RelayFault("bad_answer", `its response has the status ${statusCode}`);
    }
    upstream.responded(statusCode);
    this.#deps.metrics.firstByte(this.app, (performance.now() - this.#began) / 1000);
  }

  /** Counts and logs that an upstream has failed the request. */
  failed(upstream: Upstream, fault: RelayFault): void {
    const { name, settings } = this.app;
    const { module } = this.#deps;
    const { method, url, id } = this.event.request;
    const text = "%s: the upstream %s failed %s %s (request %s): %s";
    module.log.warn(text, name, upstream.name, method, url.raw_path, id, fault.message);
    if (!this.app.failed(upstream, module.now(), fault)) return;
    const { fail_after, fail_time } = settings;
    const pause = "%s: the upstream %s gets no requests for %d s, after %d failures";
    module.log.warn(pause, name, upstream.name, fail_time, fail_after);
  }

  #unavailable({ reason, retryAfter }: Unavailable): number {
    const { name, upstreams } = this.app;
    const { method, url, id } = this.event.request;
    const { metrics, module } = this.#deps;
    metrics.unavailable(this.app);
    const names = upstreams.map((upstream) => upstream.name).join(", ");
    const text = "%s: no upstream for %s %s (request %s): of %s, %s";
    module.log.warn(text, name, method, url.raw_path, id, names, reason);
    this.event.response.headers.retry_after = String(retryAfter);
    return 503;
  }
}
