import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type Koa from "koa";
import type { Context } from "koa";
import type { Handler, HandlerResult, HttpEvent, Middleware, MiddlewareFunction, WildcardHandler } from "../types.ts";
import { byteStream } from "../util/body_stream.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { IncomingMessage as NodeMessage } from "../util/node_http.ts";
import type { IncomingBody } from "./body.ts";
import type { Failure } from "./failure.ts";
import { type Application, adoptContext, compose, type Run } from "./koa.ts";
import { bodyOf, failureOf, headersOf, resultOf } from "./koa_answer.ts";
import type { NodeRequest } from "./node_messages.ts";
import { encodePath } from "./paths.ts";
import type { Request } from "./request.ts";
import type { AnsweredRequest, Body } from "./response.ts";
import type { MountPlace } from "./route.ts";
import { discard, pump } from "./stream.ts";

/** The request that middleware answers, as it is run by the host. */
export interface MiddlewareExchange extends AnsweredRequest {
  readonly request: Request;
  readonly service: { readonly settings: { readonly maxContentSize: number } };
  /** The request has a body that nobody has read. */
  readonly hasBody: boolean;
  rejected(thrown: unknown, failure?: Failure): void;
  /** Called where the answer goes out on Node's own response. */
  settled: (() => void) | undefined;
}

const nothing = async () => undefined;

/**
 * A provider's Koa middleware as the handler of a wildcard at the base of its app; undefined when there is none.
 * Inside, `path` and `url` begin at the base. What the middleware leaves unanswered is for the next route, what it
 * throws for the error pages; its answer is written by the host, unless it writes on `res` itself. Functions see the
 * request's own context, an application one that it makes.
 * @throws {ModhostError} MIDDLEWARE_INVALID
 */
export function middlewareHandler({ provider, name, base, owner }: MountPlace): WildcardHandler | undefined {
  const { middleware, streaming_uploads = false } = provider;
  if (middleware === undefined) return undefined;
  const app = isApplication(middleware) ? middleware : undefined;
  const list = app === undefined ? functionsOf(middleware, name) : [];
  let composed: Run | undefined = app === undefined ? composeAll(list) : undefined;

  const handle = async (exchange: MiddlewareExchange, rest: string): Promise<HandlerResult> => {
    const { request } = exchange;
    // Composed for the first request: a module may add to its application until then.
    const run = (composed ??= (app?.compose ?? compose)((app as Application).middleware));
    const url = urlBelow(base, request, rest);
    const own = request.context;
    const { incoming, release } = exposeBody(exchange, streaming_uploads);
    const context = app === undefined ? own : contextBy(app, exchange, incoming);
    if (context === own) setRequest(own, incoming);
    const sent = incoming.url as string;
    const { mountPath } = context;
    context.mountPath = base;
    context.url = url;
    try {
      return await answerBy(exchange, context, {
        run: (context) => app?.ctxStorage?.run(context, run, context, nothing) ?? run(context, nothing),
        failed: (thrown) => app !== undefined && tell(app, thrown, context, owner.log),
      });
    } finally {
      release();
      incoming.url = sent;
      context.mountPath = mountPath;
    }
  };
  return handle as unknown as WildcardHandler;
}

/**
 * Koa middleware as the handler of a route: it sees the request's own context, as it came. What it leaves unanswered is
 * for the next route. `context.state.event` is what a handler gets.
 */
export function koaHandler(...middleware: MiddlewareFunction[]): Handler {
  const run = composeAll(functionsOf(middleware, "koaHandler"));
  const handle = async (exchange: MiddlewareExchange): Promise<HandlerResult> => {
    const { context } = exchange.request;
    const { incoming, release } = exposeBody(exchange, false);
    setRequest(context, incoming);
    try {
      return await answerBy(exchange, context, { run: (context) => run(context, nothing), failed: () => undefined });
    } finally {
      release();
    }
  };
  return (event: HttpEvent) => handle(event as unknown as MiddlewareExchange);
}

interface Program {
  run(context: Context): Promise<unknown>;
  /** Told of what is thrown, before it is answered. */
  failed(thrown: unknown): void;
}

/** Runs middleware over a context, and gives what it has made of it as a handler's value. */
async function answerBy(exchange: MiddlewareExchange, context: Context, program: Program): Promise<HandlerResult> {
  const { response } = exchange;
  response.expose();
  const failed = (thrown: unknown): void => {
    program.failed(thrown);
    if (exchange.gone || response.answered) return;
    response.reclaim();
    Object.assign(response.headers, headersOf(thrown));
    exchange.rejected(thrown, failureOf(thrown));
  };
  // Koa's own would answer on `res`, and throws where nobody listens for errors. Its second version calls it for
  // streams that fail.
  context.onerror = (error: unknown) => {
    if (error !== undefined && error !== null) failed(error);
  };
  try {
    await program.run(context);
    if (exchange.gone || response.answered) discard(context.body);
    else if (response.raw.headersSent || context.respond === false) answerRaw(exchange, context);
    else {
      const result = resultOf(context);
      response.reclaim();
      return result;
    }
  } catch (thrown) {
    failed(thrown);
  }
  return true;
}

/** The middleware answers on Node's own response, or has begun to. */
function answerRaw(exchange: MiddlewareExchange, context: Context): void {
  const { response } = exchange;
  response.answered = true;
  response.sink = undefined;
  exchange.settled?.();
  if (context.respond !== false && !response.raw.writableEnded) sendRest(exchange, bodyOf(context) ?? "");
}

/** Sends a body after a head that has been sent already. */
export function sendRest(exchange: AnsweredRequest, body: Body): void {
  exchange.response.reclaim();
  const source = byteStream(typeof body === "string" || body instanceof Uint8Array ? Readable.from([body]) : body);
  pump(exchange, source as Readable, undefined).then(
    () => exchange.gone || exchange.end(),
    (error: unknown) => exchange.fail(error),
  );
}

/** @throws {ModhostError} MIDDLEWARE_INVALID */
function functionsOf(middleware: Middleware, app: string): readonly MiddlewareFunction[] {
  const list = [middleware].flat() as readonly MiddlewareFunction[];
  for (const one of list) {
    if (typeof one !== "function") throw new ModhostError("MIDDLEWARE_INVALID", { app, kind: kindOf(one) });
  }
  return list;
}

export function composeAll(list: readonly MiddlewareFunction[]): Run {
  return compose(list as unknown as Koa.Middleware[]);
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}

function isApplication(value: unknown): value is Application {
  const { createContext, middleware: list } = (value ?? {}) as Partial<Application>;
  return typeof createContext === "function" && Array.isArray(list);
}

function contextBy(app: Application, { request, response }: MiddlewareExchange, incoming: IncomingMessage): Context {
  const context = app.createContext(incoming, response.raw as ServerResponse) as Context;
  adoptContext(context, request.context.state.event as HttpEvent);
  return context;
}

function setRequest(context: Context, incoming: IncomingMessage): void {
  if (context.req !== incoming) context.req = context.request.req = context.response.req = incoming;
}

/** The raw request, its body counted and watched while others read it; or one that gives a body read before again. */
export function exposeBody(exchange: MiddlewareExchange, isUnlimited: boolean) {
  const { request, service } = exchange;
  const { buffered } = request;
  const raw = request.raw as IncomingMessage;
  if (buffered !== undefined) return { incoming: replay(raw, buffered), release: () => undefined };
  if (!exchange.hasBody) return { incoming: raw, release: () => undefined };
  const limit = isUnlimited ? Number.POSITIVE_INFINITY : service.settings.maxContentSize;
  const body: IncomingBody = request.incoming;
  const release = body.expose(limit, (error) => {
    // Nobody is left to be told.
    if (exchange.gone) raw.destroy();
    else exchange.fail(error);
  });
  return { incoming: raw, release };
}

function replay(raw: NodeRequest, body: Buffer): IncomingMessage {
  const { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor } = raw;
  const copy = new NodeMessage(raw.socket);
  const head = { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor, complete: true };
  // The socket has nothing more for it.
  Object.assign(copy, head, { _read: () => undefined });
  copy.push(body);
  copy.push(null);
  return copy;
}

/** The URL as sent from where the app begins; encoded anew where the base was not sent as it is written. */
function urlBelow(base: string, { url: { raw_path, query } }: Request, rest: string): string {
  const isPlain = raw_path === base || raw_path.startsWith(`${base}/`);
  const path = isPlain ? `/${raw_path.slice(base.length).replace(/^\/+/, "")}` : encodePath(`/${rest}`);
  return query === undefined ? path : `${path}?${query}`;
}

/** An application's own listeners for errors hear of what it throws; the log and the client do without them. */
function tell(app: Application, thrown: unknown, context: Context, log: MountPlace["owner"]["log"]): void {
  if (app.listenerCount("error") === 0) return;
  try {
    app.emit("error", thrown, context);
  } catch (error) {
    log.error("a listener for errors of its Koa application failed: %s", reasonOf(error));
  }
}
