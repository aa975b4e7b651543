/** A request on its way: to one upstream or to one after the other, until one answers. */
import { framingOf, isLooping } from "../../core/http/index.ts";
import type { HttpEvent, Module } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import { type Answer, Attempt, type AttemptDeps } from "./attempt.ts";
import { UpstreamFault } from "./fault.ts";
import { requestFields } from "./fields.ts";
import type { ProxyFigures } from "./figures.ts";
import type { Family } from "./forwarded.ts";
import { type AskedPath, askedPath } from "./paths.ts";
import { Upstream } from "./upstream.ts";

/** Methods that may be sent twice (RFC 9110, 9.2.2). */
const idempotent: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]);
const EARLY_HINTS = 103;
const LOOP_DETECTED = 508;

export interface ForwardDeps {
  readonly module: Pick<Module, "log" | "now">;
  readonly figures: ProxyFigures;
  /** Headers by which trusted proxies tell who asks. */
  readonly family: () => Family;
}

/** A request for an app whose upstreams answer. */
export interface ProxiedRequest {
  readonly event: HttpEvent;
  readonly app: ProxiedApp;
  /** The decoded path below the app. */
  readonly rest: string;
  /** It asks for a websocket. */
  readonly isUpgrade: boolean;
}

/** An answer, and the upstream that it is of. */
export interface Received extends Answer {
  readonly upstream: Upstream;
  readonly path: AskedPath;
}

/**
 * Asks upstreams until one answers. Gives a status where none does or none can be asked, and undefined where nobody waits
 * any more; rejects with what went wrong with the body on its way from the client.
 */
export async function askUpstreams(proxied: ProxiedRequest, deps: ForwardDeps): Promise<Received | number | undefined> {
  const { event, app, rest } = proxied;
  const { request } = event;
  const { settings } = app;
  const { module, figures } = deps;
  const path = askedPath(request, rest, settings.path);
  if (path === undefined) return 400;
  if (isLooping(request)) {
    module.log.warn(
      "%s: request %s goes round in a circle: an upstream leads back to this server",
      app.name,
      request.id,
    );
    return LOOP_DETECTED;
  }
  const framing = framingOf(request);
  if (settings.max_body > 0 && Number(framing.length ?? 0) > settings.max_body) return 413;
  const began = performance.now();
  const until = module.now() + settings.retry_time;
  const failed = new Set<Upstream>();
  let last: UpstreamFault | undefined;
  /** Asked again by a connection of its own, since one that was kept turned out to be closed. */
  let stale: Upstream | undefined;
  for (let attempts = 0; ; attempts += 1) {
    const upstream = stale ?? app.choose(module.now(), request.ip, failed);
    if (!(upstream instanceof Upstream)) return last === undefined ? unavailable(proxied, deps, upstream) : last.status;
    if (attempts > 0) figures.retried(app, upstream);
    const attempt = attemptOf(proxied, deps, { upstream, path, framing, isFresh: stale !== undefined });
    if (attempt === undefined) return 400;
    // Nobody waits any more, or the answer is complete, and so is the request.
    event.response.on_destroy = () => attempt.abort();
    try {
      const answer = await attempt.answer;
      const status = answer.incoming.statusCode ?? 502;
      figures.answered(app, upstream, status, (performance.now() - began) / 1000);
      return { ...answer, upstream, path };
    } catch (error) {
      if (event.response.finished) return undefined;
      if (!(error instanceof UpstreamFault)) throw error;
      const wasKept = attempt.isReused && error.reason === "lost";
      const isHarmless = !attempt.hasBegunBody && (!attempt.isConnected || idempotent.has(request.method));
      stale = wasKept && isHarmless && stale === undefined ? upstream : undefined;
      if (stale !== undefined) continue;
      failedBy(proxied, deps, upstream, error);
      if (!isHarmless || failed.size >= settings.retries || module.now() >= until) return error.status;
      failed.add(upstream);
      last = error;
    }
  }
}

/** Undefined for a path that no request line can have: HTTP/2 lets more characters through. */
function attemptOf(
  { event, app: { settings }, isUpgrade }: ProxiedRequest,
  { family }: ForwardDeps,
  { path, ...how }: Pick<AttemptDeps, "upstream" | "framing" | "isFresh"> & { readonly path: AskedPath },
): Attempt | undefined {
  const { address } = how.upstream;
  const fields = requestFields(event.request, {
    settings,
    address,
    family: family(),
    prefix: path.hidden,
    framing: how.framing,
    isUpgrade,
  });
  try {
    return new Attempt({
      ...how,
      isUpgrade,
      request: event.request,
      settings,
      fields,
      path: `${address.basePath}${path.target}`,
      informed: (status, raw) => inform(event, status, raw),
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_UNESCAPED_CHARACTERS") return undefined;
    throw error;
  }
}

/** An upstream has failed a request: it is counted, and told in the log. */
export function failedBy(
  { event, app }: ProxiedRequest,
  { module, figures }: ForwardDeps,
  upstream: Upstream,
  fault: UpstreamFault,
): void {
  const { method, url, id } = event.request;
  figures.failed(app, upstream, fault.reason);
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
  { module, figures }: ForwardDeps,
  { reason, retryAfter }: { readonly reason: string; readonly retryAfter: number },
): number {
  const { method, url, id } = event.request;
  figures.unavailable(app);
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

/** Answers before the answer: of these, clients get 103. */
function inform({ response }: HttpEvent, status: number, rawHeaders: readonly string[]): void {
  const link: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2)
    if ((rawHeaders[at] as string).toLowerCase() === "link") link.push(rawHeaders[at + 1] as string);
  if (status !== EARLY_HINTS || link.length === 0 || response.headers_sent) return;
  try {
    response.raw.writeEarlyHints({ link });
  } catch {
    // Links in another form than Node's: a client does without these hints.
  }
}
