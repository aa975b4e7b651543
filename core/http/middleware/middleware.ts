import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { Readable } from "node:stream";
import type Koa from "koa";
import type { Context } from "koa";
import type {
  Handler,
  HandlerResult,
  HttpEvent,
  HttpProvider,
  Middleware,
  MiddlewareFunction,
  MiddlewareProvider,
  Module,
  WildcardHandler,
} from "../../types.ts";
import { byteStream } from "../../util/body_stream.ts";
import { bindListeners } from "../../util/bound_listeners.ts";
import { ModhostError, readableThrown, reasonOf } from "../../util/errors.ts";
import { IncomingMessage as NodeMessage } from "../../util/node_http.ts";
import type { NodeRequest } from "../../util/node_messages.ts";
import type { IncomingBody } from "../message/body.ts";
import type { Failure } from "../message/failure.ts";
import { encodePath } from "../message/paths.ts";
import type { Request } from "../message/request.ts";
import type { Body, ResponseExchange } from "../message/response.ts";
import { discard, pump } from "../message/stream.ts";
import { type ClassicMessages, classicMessages } from "./classic_messages.ts";
import { type Application, adoptContext, compose, isRouter, type Run, shareMembers } from "./koa.ts";
import { isDefaultListener, listenForErrors } from "./koa_errors.ts";
import { bodyOf, failureOf, headersOf, resultOf } from "./koa_response.ts";

/** An app that provides middleware, with its base path. */
interface MiddlewareApp {
  readonly name: string;
  readonly base: string;
  readonly owner: Module;
  readonly provider: HttpProvider | MiddlewareProvider;
}

/** The part of an exchange that middleware uses. */
export interface MiddlewareExchange extends ResponseExchange {
  readonly request: Request;
  readonly service: { readonly settings: { readonly maxContentSize: number } };
  /** The request has a body that nobody has read. */
  readonly hasBody: boolean;
  rejected(thrown: unknown, failure?: Failure): void;
  /** Called when middleware sends the response on Node's own response. */
  settled: (() => void) | undefined;
}

const nothing = async () => undefined;

/**
 * Returns a provider's Koa middleware as the handler of a wildcard at the base of its app;
 * undefined when the provider has none. Inside it, `path` and `url` begin at the base. When the
 * middleware does not respond, the next route is tried; an error that it throws leads to an error
 * page. The host writes its response, unless it writes on `res` itself. Functions get the request's
 * own context; an application creates its own.
 * @throws {ModhostError} MIDDLEWARE_INVALID
 */
export function middlewareHandler({ provider, name, base, owner }: MiddlewareApp): WildcardHandler | undefined {
  const { middleware, streaming_uploads = false } = provider;
  if (middleware === undefined) return undefined;
  const app = isApplication(middleware) ? middleware : undefined;
  const list = app === undefined ? functionsOf(middleware, name) : [];
  let composed: Run | undefined = app === undefined ? composeAll(list) : undefined;

  const handle = async (exchange: MiddlewareExchange, rest: string): Promise<HandlerResult> => {
    const { request } = exchange;
    // Composed for the first request: a module may add to its application until then.
    if (composed === undefined && app !== undefined)
      listenForErrors(app, (text) => owner.log.error("its Koa application reports: %s", text));
    const run = (composed ??= (app?.compose ?? compose)((app as Application).middleware));
    const url = urlBelow(base, request, rest);
    const own = request.context;
    const { incoming, release } = exposeBody(exchange, streaming_uploads);
    const context = app === undefined ? own : contextBy(app, exchange, incoming);
    if (context === own) setMessages(own, incoming, exchange);
    const sent = incoming.url as string;
    const { mountPath } = context;
    const { response } = exchange;
    const restore = () => {
      incoming.url = sent;
      context.mountPath = mountPath;
    };
    context.mountPath = base;
    context.url = url;
    if (context !== own) shareMembers(context, own);
    try {
      return await runMiddleware(exchange, context, {
        run: (context) => app?.ctxStorage?.run(context, run, context, nothing) ?? run(context, nothing),
        failed: (thrown) => app !== undefined && emitError(app, thrown, context, owner.log),
      });
    } finally {
      release();
      own._matchedRoute = context._matchedRoute;
      // Code written for Node.js reads the URL after the middleware has returned, until the
      // response is complete.
      if (response.responded && !response.raw.writableEnded) response.raw.once("close", restore);
      else restore();
    }
  };
  return handle as unknown as WildcardHandler;
}

/**
 * Returns Koa middleware as the handler of a route. It gets the request's own context, with the
 * path as sent. When it does not respond, the next route is tried. `context.state.event` is the
 * event that handlers get.
 */
export function koaHandler(...middleware: MiddlewareFunction[]): Handler {
  const run = composeAll(functionsOf(middleware, "koaHandler"));
  const handle = async (exchange: MiddlewareExchange): Promise<HandlerResult> => {
    const { context } = exchange.request;
    const { incoming, release } = exposeBody(exchange, false);
    setMessages(context, incoming, exchange);
    try {
      return await runMiddleware(exchange, context, {
        run: (context) => run(context, nothing),
        failed: () => undefined,
      });
    } finally {
      release();
    }
  };
  return (event: HttpEvent) => handle(event as unknown as MiddlewareExchange);
}

interface Program {
  run(context: Context): Promise<unknown>;
  /** Called with an error before the response to it. */
  failed(thrown: unknown): void;
}

/** Runs middleware on a context, and returns its response as a handler's value. */
async function runMiddleware(exchange: MiddlewareExchange, context: Context, program: Program): Promise<HandlerResult> {
  const { response } = exchange;
  response.expose();
  const failed = (given: unknown): void => {
    const thrown = readableThrown(given);
    program.failed(thrown);
    if (exchange.gone || response.responded) return;
    response.reclaim();
    Object.assign(response.headers, headersOf(thrown));
    exchange.rejected(thrown, failureOf(thrown));
  };
  // Koa's own `onerror` would write on `res`, and throws when nobody listens for errors. Koa 2
  // calls it for streams that fail.
  context.onerror = (error: unknown) => {
    if (error !== undefined && error !== null) failed(error);
  };
  try {
    await program.run(context);
    if (exchange.gone || response.responded) discard(context.body);
    else if (response.raw.headersSent || context.respond === false) finishRaw(exchange, context);
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

/** Finishes a response that middleware sends, or has begun to send, on Node's own response. */
function finishRaw(exchange: MiddlewareExchange, context: Context): void {
  const { response } = exchange;
  response.responded = true;
  response.sink = undefined;
  exchange.settled?.();
  if (context.respond !== false && !response.raw.writableEnded) sendRest(exchange, bodyOf(context) ?? "");
}

/** Sends a body after a head that has been sent already. */
export function sendRest(exchange: ResponseExchange, body: Body): void {
  exchange.response.reclaim();
  const source = byteStream(typeof body === "string" || body instanceof Uint8Array ? Readable.from([body]) : body);
  const sent = exchange.inContext(() => pump(exchange, source as Readable, undefined));
  sent.then(
    () => exchange.gone || exchange.end(),
    (error: unknown) => exchange.fail(error),
  );
}

/** @throws {ModhostError} MIDDLEWARE_INVALID */
function functionsOf(middleware: Middleware, app: string): readonly MiddlewareFunction[] {
  const list = isRouter(middleware)
    ? [middleware.routes(), middleware.allowedMethods()]
    : ([middleware].flat() as readonly MiddlewareFunction[]);
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

function contextBy(app: Application, exchange: MiddlewareExchange, incoming: IncomingMessage): Context {
  const context = app.createContext(incoming, messagesOf(exchange).response) as Context;
  adoptContext(context, exchange.request.context.state.event as HttpEvent);
  return context;
}

export function setMessages(context: Context, incoming: IncomingMessage, exchange: MiddlewareExchange): void {
  if (context.req !== incoming) context.req = context.request.req = context.response.req = incoming;
  const { response } = messagesOf(exchange);
  if (context.res !== response) context.res = context.request.res = context.response.res = response;
}

/**
 * Returns the raw request, with its body counted and watched while middleware reads it, or a
 * request that replays a body that was read before.
 */
export function exposeBody(exchange: MiddlewareExchange, isUnlimited: boolean) {
  const { request, service } = exchange;
  const { buffered } = request;
  const raw = request.raw as IncomingMessage;
  const shown = exchange.http2 ? messagesOf(exchange).request : raw;
  bindListeners(shown);
  if (!exchange.http2) bindListeners(raw.socket);
  if (buffered !== undefined) return { incoming: replay(shown, buffered), release: () => undefined };
  if (!exchange.hasBody) return { incoming: shown, release: () => undefined };
  const limit = isUnlimited ? Number.POSITIVE_INFINITY : service.settings.maxContentSize;
  const body: IncomingBody = request.incoming;
  const release = body.expose(limit, (error) => {
    // The client has left or has its response.
    if (exchange.gone) raw.destroy();
    else exchange.fail(error);
  });
  return { incoming: shown, release };
}

/**
 * Returns the request and response for Koa's contexts and for code written for Node.js: HTTP/1
 * objects in any case.
 */
function messagesOf({ http2, request, response }: MiddlewareExchange): ClassicMessages {
  const own = { request: request.raw, response: response.raw };
  if (!http2) return own as ClassicMessages;
  return classicMessages(own.request as Http2ServerRequest, own.response as Http2ServerResponse);
}

function replay(raw: NodeRequest, body: Buffer): IncomingMessage {
  const { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor } = raw;
  const copy = new NodeMessage(raw.socket);
  const head = { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor, complete: true };
  // The copy already has the whole body.
  Object.assign(copy, head, { _read: () => undefined });
  copy.push(body);
  copy.push(null);
  return copy;
}

/**
 * Returns the URL as sent, from the base of the app on. It is encoded again when the base was sent
 * in another spelling.
 */
function urlBelow(base: string, { url: { raw_path, query } }: Request, rest: string): string {
  const isPlain = raw_path === base || raw_path.startsWith(`${base}/`);
  const path = isPlain ? `/${raw_path.slice(base.length).replace(/^\/+/, "")}` : encodePath(`/${rest}`);
  return query === undefined ? path : `${path}?${query}`;
}

/**
 * Emits an error on an application with error listeners of its own. The log and the client do not
 * depend on them.
 */
function emitError(app: Application, thrown: unknown, context: Context, log: Module["log"]): void {
  if (app.listeners("error").every(isDefaultListener)) return;
  try {
    app.emit("error", thrown, context);
  } catch (error) {
    log.error("a listener for errors of its Koa application failed: %s", reasonOf(error));
  }
}
