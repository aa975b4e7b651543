import { Readable } from "node:stream";
import Koa, { type Context } from "koa";
import type { HandlerResult, Middleware, ResponseFields, ResponseHeaders, WildcardHandler } from "../types.ts";
import { byteStream } from "../util/body_stream.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { IncomingMessage, type ServerResponse, STATUS_CODES } from "../util/node_http.ts";
import type { NodeRequest } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import { classify, type Failure } from "./failure.ts";
import { encodePath } from "./paths.ts";
import { lendResponse } from "./raw_response.ts";
import type { Request } from "./request.ts";
import type { Body } from "./response.ts";
import type { AppMount } from "./routes.ts";
import { discard, pump } from "./stream.ts";

type Run = (context: Context, next: () => Promise<void>) => Promise<void>;
/** `compose` is unknown to Koa's types, and to its second version. */
type Application = Koa & { readonly compose?: (middleware: Koa.Middleware[]) => Run };

const { compose } = new Koa() as unknown as Required<Application>;
const nothing = async () => undefined;

/**
 * A provider's Koa middleware as the handler of a wildcard at the base of its app; undefined when there is none.
 * Inside, `path` and `url` begin at the base. What the middleware leaves unanswered is for the next route, what it
 * throws for the error pages; its answer is written by the host, unless it writes on `res` itself.
 * @throws {ModhostError} MIDDLEWARE_INVALID
 */
export function middlewareHandler(mount: AppMount): WildcardHandler | undefined {
  const { provider, name, base } = mount;
  if (provider.middleware === undefined) return undefined;
  const app = applicationOf(provider.middleware, name);
  let run: Run | undefined;

  async function handle(exchange: Exchange, rest: string): Promise<HandlerResult> {
    // Composed for the first request: a module may add to its application until then.
    const composed = (run ??= (app.compose ?? compose)(app.middleware));
    const { request, response } = exchange;
    lendResponse(exchange);
    const { incoming, release } = lendRequest(exchange, provider.streaming_uploads === true);
    const sent = incoming.url as string;
    const context = app.createContext(incoming as IncomingMessage, response.raw as ServerResponse) as Context;
    fit(context, exchange);
    context.mountPath = base;
    context.url = urlBelow(base, request, rest);
    const failed = (thrown: unknown): void => {
      tell(app, thrown, context, mount);
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
      await (app.ctxStorage?.run(context, composed, context, nothing) ?? composed(context, nothing));
      if (exchange.gone || response.answered) {
        discard(context.body);
      } else if (response.raw.headersSent || context.respond === false) {
        response.answered = true;
        if (context.respond !== false && !response.raw.writableEnded) goOn(exchange, bodyOf(context) ?? "");
      } else {
        const result = resultOf(context);
        response.reclaim();
        if (result !== undefined) return result;
        release();
        incoming.url = sent;
        return undefined;
      }
    } catch (thrown) {
      failed(thrown);
    }
    return true;
  }
  return handle as unknown as WildcardHandler;
}

/** The application as it is, of whatever version of Koa; one of our own around functions. */
function applicationOf(middleware: Middleware, app: string): Application {
  if (isApplication(middleware)) return middleware;
  const koa = new Koa();
  for (const one of [middleware].flat()) {
    if (typeof one !== "function") throw new ModhostError("MIDDLEWARE_INVALID", { app, kind: kindOf(one) });
    koa.use(one as unknown as Koa.Middleware);
  }
  return koa;
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}

function isApplication(value: unknown): value is Application {
  const { createContext, middleware: list } = (value ?? {}) as Partial<Application>;
  return typeof createContext === "function" && Array.isArray(list);
}

/** The raw request, its body counted and watched while others read it; or one that gives a body read before again. */
function lendRequest(exchange: Exchange, isUnlimited: boolean) {
  const { request, service } = exchange;
  const { buffered, raw } = request;
  if (buffered !== undefined) return { incoming: replay(raw, buffered), release: () => undefined };
  const limit = isUnlimited ? Number.POSITIVE_INFINITY : service.settings.maxContentSize;
  const release = request.incoming.lend(limit, (error) => {
    // Nobody is left to be told.
    if (exchange.gone) raw.destroy();
    else exchange.fail(error);
  });
  return { incoming: raw, release };
}

function replay(raw: NodeRequest, body: Buffer): IncomingMessage {
  const { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor } = raw;
  const copy = new IncomingMessage(raw.socket);
  const head = { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor, complete: true };
  // The socket has nothing more for it.
  Object.assign(copy, head, { _read: () => undefined });
  copy.push(body);
  copy.push(null);
  return copy;
}

/** Makes the context tell what the host knows of the client: forwarding headers count as `trusted_proxies` says. */
function fit(context: Context, exchange: Exchange): void {
  const { request } = exchange;
  const { ip, secure, url, headers } = request;
  const values = {
    ip,
    ips: ip === request.conn.ip() ? [] : [ip],
    protocol: secure ? "https" : "http",
    host: url.host ?? headers.host ?? "",
  };
  const property = (value: unknown) => ({ value, writable: true, configurable: true, enumerable: true });
  for (const [name, value] of Object.entries(values)) Object.defineProperty(context.request, name, property(value));
  context.state.event = exchange;
}

/** The URL as sent from where the app begins; encoded anew where the base was not sent as it is written. */
function urlBelow(base: string, { url: { raw_path, query } }: Request, rest: string): string {
  const isPlain = raw_path === base || raw_path.startsWith(`${base}/`);
  const path = isPlain ? `/${raw_path.slice(base.length).replace(/^\/+/, "")}` : encodePath(`/${rest}`);
  return query === undefined ? path : `${path}?${query}`;
}

/** What Koa would send of the context, as a handler's value; undefined when the middleware has not answered. */
function resultOf(context: Context): HandlerResult {
  const { status, res, req } = context;
  const body = bodyOf(context);
  const isError = status >= 400;
  if (body === undefined && isError) return status === 404 ? undefined : status;
  const fields: ResponseFields = { status_code: status };
  if (req.httpVersionMajor < 2 && res.statusMessage) fields.status = res.statusMessage;
  if (body !== undefined) return { ...fields, body };
  // A HEAD answer has the length that the middleware gave it, or none.
  if (context.method === "HEAD") return { ...fields, body: Readable.from([]) };
  if (context.body === null || emptyStatuses.has(status)) return { ...fields, headers: { content_type: undefined } };
  const phrase = STATUS_CODES[status] ?? String(status);
  return { ...fields, headers: { content_type: "text/plain; charset=utf-8" }, body: fields.status ?? phrase };
}

const emptyStatuses: ReadonlySet<number> = new Set([204, 205, 304]);

/** The body that Koa would send; undefined for none. */
function bodyOf({ body }: Context): Body | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === "string" || Buffer.isBuffer(body) || body instanceof ReadableStream) return body;
  if (body instanceof Blob) return body.stream();
  if (body instanceof Response) return body.body ?? "";
  if (body instanceof Readable) return body;
  // Streams of old, and of packages that bring their own.
  if (typeof body === "object" && "pipe" in body) return new Readable().wrap(body as NodeJS.ReadableStream);
  return JSON.stringify(body);
}

/** Sends a body after a head that has been sent already. */
function goOn(exchange: Exchange, body: Body): void {
  exchange.response.reclaim();
  const source = byteStream(typeof body === "string" || body instanceof Uint8Array ? Readable.from([body]) : body);
  pump(exchange, source as Readable, undefined).then(
    () => exchange.gone || exchange.end(),
    (error: unknown) => exchange.fail(error),
  );
}

/** Errors for HTTP carry `status` or `statusCode`, and `expose`; others are what they are for every handler. */
function failureOf(thrown: unknown): Failure {
  if (typeof thrown !== "object" || thrown === null || ModhostError.is(thrown)) return classify(thrown);
  const { status, statusCode, expose, message } = thrown as Record<string, unknown>;
  const code = [status, statusCode].find((one) => Number.isInteger(one) && Number(one) >= 400 && Number(one) <= 599);
  if (typeof code !== "number") return classify(thrown);
  // The page says the phrase of the status anyway.
  const isWorthSaying =
    expose === true && typeof message === "string" && message !== "" && message !== STATUS_CODES[code];
  return { status: code, message: isWorthSaying ? message : undefined };
}

function headersOf(thrown: unknown): ResponseHeaders {
  const headers = (thrown as { headers?: unknown } | null | undefined)?.headers;
  if (typeof headers !== "object" || headers === null) return {};
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase().replaceAll("-", "_"), value]),
  );
}

/** An application's own listeners for errors hear of what it throws; the log and the client do without them. */
function tell(app: Application, thrown: unknown, context: Context, { owner }: AppMount): void {
  if (app.listenerCount("error") === 0) return;
  try {
    app.emit("error", thrown, context);
  } catch (error) {
    owner.log.error("a listener for errors of its Koa application failed: %s", reasonOf(error));
  }
}
