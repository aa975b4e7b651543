import type Koa from "koa";
import type { Context } from "koa";
import { reasonOf } from "../util/errors.ts";
import { type Claim, claimOf } from "./claims.ts";
import { Exchange, type ExchangeService } from "./exchange.ts";
import { type HeadFacts, scanHead } from "./head.ts";
import { badHost } from "./hosts.ts";
import { isHttp2 } from "./http2.ts";
import { type Application, compose } from "./koa.ts";
import { answerThrough } from "./layered_answer.ts";
import type { NodeRequest, NodeResponse } from "./node_messages.ts";
import { parseTarget, type Target } from "./paths.ts";
import type { Resolution, RouteTable } from "./routes.ts";
import { isTraced, traced } from "./tracing.ts";
import { type Handover, websocketMethod } from "./upgrade.ts";
import { WebSocketExchange } from "./websocket_exchange.ts";

/** What the first step found out, for those after it. */
interface Admitted {
  readonly head: HeadFacts;
  readonly target: Target;
  /** The virtual host that serves the request; undefined for a name that none has, where an app may take it. */
  readonly host: string | undefined;
}

type Step = Koa.Middleware<{ admitted: Admitted }>;

/** The service whose requests go through here. */
export interface PipelineService extends ExchangeService {
  readonly koa: Koa;
  readonly hosts: { choose(authority: string | undefined): string | symbol };
  readonly table: RouteTable;
  /** The connection of a request that asks for a websocket, where one is served. */
  handover(request: NodeRequest): Handover | undefined;
}

/** Every step answers through the service, or hands on. */
const done = Promise.resolve();
const versions: ReadonlySet<string> = new Set(["1.0", "1.1"]);
/** RFC 8555, 8.3. */
const PROOFS = "/.well-known/acme-challenge/";
const nowhere: Target = { rawPath: "/", query: undefined, scheme: undefined, authority: undefined };

/**
 * The Koa middleware that every request goes through: `admit`, then `dispatch`. Answers are the service's own and not
 * Koa's `respond`, with the headers that a handler set, also on failures; and of forwarding headers only those of
 * trusted proxies count (`app.proxy` stays off).
 */
export function pipeline(service: PipelineService): (request: NodeRequest, response: NodeResponse) => void {
  const koa: Application = service.koa;
  // Not the application's own list: services may share an application, and each has its own steps.
  const run = compose([admit(service), dispatch(service)] as Parameters<typeof compose>[0]);
  return (request, response) => {
    const context = koa.createContext(request as never, response as never) as Context;
    run(context, () => done).catch((error: unknown) => {
      service.environment.log.error("A request was lost: %s", reasonOf(error));
      response.socket?.destroy();
    });
  };
}

/** Refuses what is no request for this server: its version, target and host. */
function admit(service: PipelineService): Step {
  return function admit(context, next) {
    const { req: raw } = context;
    const head = scanHead(raw.rawHeaders);
    const target = parseTarget(raw.url as string);
    const refuse = (path: string, status: number, message?: string) => {
      new Exchange(service, context, head, target ?? nowhere, path, "*").refuse(status, message);
      return done;
    };
    if (!isHttp2(raw) && !versions.has(raw.httpVersion)) return refuse("/", 505);
    // HTTP/2 takes any word for a method, but this one is no client's.
    if (raw.method === websocketMethod) return refuse("/", 501);
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

/**
 * Answers a certificate authority, whatever host it asks and before any app or middleware. False for a token that nobody
 * knows: an app may serve proofs of its own.
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

/** Finds the routes of the request, and lets their handlers answer. */
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
    const answer = () => {
      if (table.claimants.length > 0 && resolution !== undefined)
        return answerClaimed(table, resolution, exchange, host);
      return answerBy(resolution, exchange);
    };
    return isTraced() ? traced(exchange, answer) : answer();
  };
}

const unknown = (authority: string | undefined) => `Unknown host: ${authority ?? ""}`;

/** Lets the app answer that takes the request by its host, and the routes where none does. */
function answerClaimed(
  table: RouteTable,
  resolution: Resolution,
  exchange: Exchange,
  host: string | undefined,
): Promise<void> {
  const { request } = exchange;
  const go = (claim: Claim | undefined) => {
    // What speaks by the websockets of apps here would speak for any of those hosts.
    if (claim !== undefined && exchange instanceof WebSocketExchange) exchange.refuse(404);
    else if (claim !== undefined) answerBy(table.claimed(claim, request.method, resolution.path), exchange);
    else if (host === undefined) exchange.refuse(404, unknown(request.url.host ?? request.headers.host));
    else answerBy(resolution, exchange);
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

function answerBy(resolution: Resolution | undefined, exchange: Exchange): Promise<void> {
  if (resolution === undefined) exchange.refuse(400, "Invalid path");
  else if (resolution.chain !== undefined) return answerThrough(resolution.chain, exchange, resolution);
  else exchange.begin(resolution);
  return done;
}
