import type { Http2ServerRequest } from "node:http2";
import type Koa from "koa";
import type { Context } from "koa";
import { reasonOf } from "../util/errors.ts";
import { ENHANCE_YOUR_CALM, isHttp2 } from "../util/http2.ts";
import type { NodeRequest, NodeResponse } from "../util/node_messages.ts";
import { type Handover, websocketMethod } from "./connection/upgrade.ts";
import { Exchange } from "./lifecycle/exchange.ts";
import type { ExchangeService } from "./lifecycle/exchange_service.ts";
import { respondThrough } from "./lifecycle/layered_response.ts";
import { isTraced, traced } from "./lifecycle/tracing.ts";
import { type HeadFacts, scanHead } from "./message/head.ts";
import { nowhere, parseTarget, type Target } from "./message/paths.ts";
import { type Application, compose } from "./middleware/koa.ts";
import { type Claim, claimOf } from "./routing/claims.ts";
import { badHost } from "./routing/hosts.ts";
import type { Resolution, RouteTable } from "./routing/routes.ts";
import { WebSocketExchange } from "./websocket/exchange.ts";

/** Facts about the request head that `admit` has found, for `dispatch`. */
interface Admitted {
  readonly head: HeadFacts;
  readonly target: Target;
  /**
   * The virtual host that serves the request; undefined for an unknown name, which an app may still
   * claim.
   */
  readonly host: string | undefined;
}

type Step = Koa.Middleware<{ admitted: Admitted }>;

/** The service whose requests the pipeline runs. */
export interface PipelineService extends ExchangeService {
  readonly koa: Koa;
  readonly hosts: { choose(authority: string | undefined): string | symbol };
  readonly table: RouteTable;
  /** The released connection of a websocket request; undefined for other requests. */
  handover(request: NodeRequest): Handover | undefined;
}

/** Returned by steps that respond themselves: Koa has nothing to do afterwards. */
const done = Promise.resolve();
const versions: ReadonlySet<string> = new Set(["1.0", "1.1"]);
/** RFC 8555, 8.3. */
const PROOFS = "/.well-known/acme-challenge/";

/**
 * Returns the function that runs a request through two Koa middleware steps, `admit` and
 * `dispatch`. The host writes responses itself, without Koa's `respond`, so that headers that a
 * handler set are sent on failures too. It also evaluates forwarding headers itself, and only those
 * of trusted proxies (`app.proxy` stays off).
 */
export function pipeline(service: PipelineService): (request: NodeRequest, response: NodeResponse) => void {
  const koa: Application = service.koa;
  // Services may share an application but have their own steps, so the application's own list is
  // not used.
  const run = compose([admit(service), dispatch(service)] as Parameters<typeof compose>[0]);
  return (request, response) => {
    const context = koa.createContext(request as never, response as never) as Context;
    run(context, () => done).catch((error: unknown) => {
      service.environment.log.error("A request was lost: %s", reasonOf(error));
      response.socket?.destroy();
    });
  };
}

/** Refuses requests whose version, target or host this server does not serve. */
function admit(service: PipelineService): Step {
  return function admit(context, next) {
    const { req: raw } = context;
    const head = scanHead(raw.rawHeaders);
    const target = parseTarget(raw.url ?? "");
    const refuse = (path: string, status: number, message?: string) => {
      new Exchange(service, context, head, target ?? nowhere, path, "*").refuse(status, message);
      return done;
    };
    if (!isHttp2(raw) && !versions.has(raw.httpVersion)) return refuse("/", 505);
    // Node enforces the limit only after the client has acknowledged it.
    const { maxHeaderSize } = service.settings;
    if (isHttp2(raw) && head.size > maxHeaderSize) return refuse("/", 431);
    if (isHttp2(raw) && !raw.stream.endAfterHeaders) boundTrailers(raw, maxHeaderSize);
    // HTTP/2 accepts any word as a method, but clients may not send the internal one.
    if (raw.method === websocketMethod || raw.method === "CONNECT") return refuse("/", 501);
    // The parser removes only the chunks. A body with another transfer coding would be taken for
    // the plain body (RFC 9112, 6.1).
    if (head.coded) return refuse(target?.rawPath ?? "/", 501, "Chunks are the only transfer coding here");
    if (target === undefined) {
      if (raw.url !== "*" || raw.method !== "OPTIONS") return refuse("/", 400, "The request target is not a path");
      new Exchange(service, context, head, nowhere, "*", "*").response.send();
      return done;
    }
    if (target.rawPath.startsWith(PROOFS) && proves(service, context, head, target)) return done;
    const authority = target.authority ?? head.authority;
    const host = service.hosts.choose(authority);
    const isMissing = head.authority === undefined && raw.httpVersion === "1.1";
    if (isMissing || head.ambiguousHost || host === badHost) {
      return refuse(target.rawPath, 400, "Missing or invalid Host header");
    }
    const isKnown = typeof host === "string";
    if (!isKnown && service.table.claimants.length === 0) return refuse(target.rawPath, 404, unknown(authority));
    context.state.admitted = { head, target, host: isKnown ? host : undefined };
    return next();
  };
}

/** Resets the stream when its trailers are larger than the limit for the head. */
function boundTrailers({ stream }: Http2ServerRequest, limit: number): void {
  stream.once("trailers", (_trailers: unknown, _flags: unknown, raw: readonly string[]) => {
    if (scanHead(raw).size > limit) stream.close(ENHANCE_YOUR_CALM);
  });
}

/**
 * Responds to the challenge of a certificate authority on any host, before any app or middleware.
 * Returns false for an unknown token, because an app may serve its own proofs.
 */
function proves(service: PipelineService, context: Context, head: HeadFacts, target: Target): boolean {
  const { environment } = service;
  const { method } = context.req;
  if ((method !== "GET" && method !== "HEAD") || !environment.hasHooks("acme-challenge")) return false;
  const proof = environment.fire("acme-challenge", { token: target.rawPath.slice(PROOFS.length) }, "*");
  if (typeof proof !== "string") return false;
  const { response } = new Exchange(service, context, head, target, target.rawPath, "*");
  response.headers.content_type = "application/octet-stream";
  return response.send(proof);
}

/** Finds the routes of the request and runs their handlers. */
function dispatch(service: PipelineService): Step {
  return function dispatch(context) {
    const { req: raw } = context;
    const { head, target, host } = context.state.admitted;
    const handover = service.handover(raw);
    const method = handover === undefined ? (raw.method as string) : websocketMethod;
    const { table } = service;
    const resolution = table.resolve(host ?? "*", method, target.rawPath);
    const facts = [service, context, head, target, resolution?.path ?? target.rawPath, host ?? "*"] as const;
    const exchange = handover === undefined ? new Exchange(...facts) : new WebSocketExchange(handover, ...facts);
    const respond = () => {
      if (table.claimants.length > 0 && resolution !== undefined)
        return respondClaimed(table, resolution, exchange, host);
      return respondBy(resolution, exchange);
    };
    return isTraced() ? traced(exchange, respond) : respond();
  };
}

const unknown = (authority: string | undefined) => `Unknown host: ${authority ?? ""}`;

/** Lets the app that claims the request respond, or the routes when no app claims it. */
function respondClaimed(
  table: RouteTable,
  resolution: Resolution,
  exchange: Exchange,
  host: string | undefined,
): Promise<void> {
  const { request } = exchange;
  const go = (claim: Claim | undefined) => {
    // A websocket of such an app could speak for every host that the app claims.
    if (claim !== undefined && exchange instanceof WebSocketExchange) exchange.refuse(404);
    else if (claim !== undefined) respondBy(table.claimed(claim, request.method, resolution.path), exchange);
    else if (host === undefined) exchange.refuse(404, unknown(request.url.host ?? request.header("host")));
    else respondBy(resolution, exchange);
  };
  try {
    const claim = claimOf(request, table.claimants);
    if (!(claim instanceof Promise)) go(claim);
    else claim.then(go).catch((error: unknown) => exchange.fail(error));
  } catch (error) {
    exchange.fail(error);
  }
  return done;
}

function respondBy(resolution: Resolution | undefined, exchange: Exchange): Promise<void> {
  if (resolution === undefined) exchange.refuse(400, "Invalid path");
  else if (resolution.chain !== undefined) return respondThrough(resolution.chain, exchange, resolution);
  else exchange.begin(resolution);
  return done;
}
