import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Context } from "koa";
import type {
  DefaultHeaders,
  HttpErrorEvent,
  HttpEvent,
  HttpFinishedEvent,
  Module,
  RequestTrace,
  ResponseFields,
} from "../../types.ts";
import { ModhostError, readableThrown } from "../../util/errors.ts";
import { INTERNAL_ERROR, isHttp2 } from "../../util/http2.ts";
import { isAbandoned } from "../../util/node_messages.ts";
import { stackOf } from "../../util/stack.ts";
import type { CountingToken, TokenUse } from "../../util/token_use.ts";
import { usageOf } from "../../util/usage.ts";
import { classify, type Failure } from "../message/failure.ts";
import { faultOf, isThenable, resultInvalid, strayField } from "../message/handler_result.ts";
import { type HeadFacts, unparsedHead } from "../message/head.ts";
import { encodePath, type Target } from "../message/paths.ts";
import { Request } from "../message/request.ts";
import { type Body, Response } from "../message/response.ts";
import { discard } from "../message/stream.ts";
import { bindContext } from "../middleware/koa.ts";
import { admitOrigin, isPreflight } from "../policy/cors.ts";
import { assignHeaders } from "../policy/default_headers.ts";
import { isAdmitted } from "../policy/token_check.ts";
import { type Candidate, type Mount, type Route, takesAnything } from "../routing/route.ts";
import { keyOf } from "../routing/routers.ts";
import type { Resolution } from "../routing/routes.ts";
import { advise, untypedAdvice } from "./advice.ts";
import { endResponse } from "./end_response.ts";
import { errorPage, sendPage } from "./error_page.ts";
import type { ExchangeService } from "./exchange_service.ts";
import type { LayeredExchange } from "./layered_response.ts";
import { Sending } from "./sending.ts";
import { endTrace, tracesRefusal } from "./tracing.ts";
import { closesConnection, hasUnreadBody, takesBodyAsItComes } from "./unread_body.ts";
import { missing, respondUnrouted } from "./unrouted.ts";

/**
 * One request and its response: runs the handlers and knows when the request is over. Handlers
 * receive it as their event (contract, part 2).
 */
export class Exchange implements HttpEvent, LayeredExchange, TokenUse {
  readonly service: ExchangeService;
  readonly request: Request;
  readonly response: Response;
  readonly http2: boolean;
  readonly head: HeadFacts;
  /** The response is complete, or the client has left. */
  gone = false;
  /**
   * Lets middleware before the apps continue when the handlers are done without a response in the
   * context.
   */
  settled: (() => void) | undefined = undefined;
  /** Forwarders that have sent the request to a worker. */
  forwarders: object[] | undefined = undefined;
  /** Set while the request is traced. */
  trace: RequestTrace | undefined = undefined;
  /** Set at the end: whether the system has taken the whole response. */
  #complete = false;
  /** The route whose value is the response. */
  #route: Route | undefined;
  readonly began = performance.now();
  #resolution: Resolution | undefined;
  #next = 0;
  #mount: Mount | undefined;
  /** Slot among the requests of the app. */
  #slot: number | undefined;
  /** The error that was handled last. */
  #failure: unknown;
  /** The middleware that failed, with its module. */
  #failedMiddleware: { readonly owner: Module; readonly name: string | undefined } | undefined;
  #sending: Sending | undefined;
  #token: CountingToken | undefined;
  #announced = false;
  /** Milliseconds in handlers, up to their first await, for `http-finished`. */
  #busy = 0;

  constructor(service: ExchangeService, context: Context, head: HeadFacts, target: Target, path: string, host: string) {
    this.service = service;
    this.head = head;
    this.http2 = isHttp2(context.req);
    this.request = new Request(this, context, target, path, host);
    this.response = new Response(this, context.res);
    bindContext(context, this);
    context.res.on("close", () => this.over());
  }

  /** The app whose handler runs. */
  get mount(): Mount | undefined {
    return this.#mount;
  }

  get uploadPause(): number {
    return this.#mount?.provider.upload_pause ?? 0;
  }

  get defaults(): DefaultHeaders | undefined {
    return this.#mount === undefined ? this.service.settings.defaultHeaders : this.#mount.defaults;
  }

  untyped(): void {
    if (!takesAnything(this.#route) && !this.service.environment.typesElsewhere) this.#advise(untypedAdvice);
  }

  /** Whether the connection has switched to another protocol. */
  protected get switched(): boolean {
    return false;
  }

  /** Whether trailers may follow the body. */
  get canTrail(): boolean {
    return this.request.method !== "HEAD" && this.request.httpversion !== "1.0";
  }

  /** Responds by the routes that the table has found. */
  begin(resolution: Resolution): void {
    this.#resolution = resolution;
    const { cors, routed, relayed, candidates } = resolution;
    const preflight = admitOrigin(cors, this) && isPreflight(this.request);
    // The host responds to preflights for apps with CORS settings, unless the app has a route for
    // OPTIONS itself. The upstream of a relay does not know the host's CORS settings.
    if (preflight ? routed && !relayed : routed || candidates.length > 0) this.run();
    else respondUnrouted(this, resolution, preflight ? cors : undefined);
  }

  /** Tries the remaining candidates until one responds (contract, part 4). */
  run(): void {
    const resolution = this.#resolution as Resolution;
    const { candidates, routed } = resolution;
    while (this.#next < candidates.length) {
      const candidate = candidates[this.#next] as Candidate;
      const { mount } = candidate.route;
      // A module that is being unloaded finishes the requests it has begun and takes no others.
      if (mount.retired && mount !== this.#mount && !mount.takesLate) {
        this.#next += 1;
        continue;
      }
      this.#enter(mount);
      if (mount.need !== undefined && !isAdmitted(this, mount.need)) return;
      if (this.hasBody && !takesBodyAsItComes(this, candidate.route)) return;
      this.#next += 1;
      if (this.#call(candidate)) return;
    }
    if (routed) this.refuse(missing(this.service));
    else respondUnrouted(this, resolution);
  }

  /** Responds with a status and its error page. */
  refuse(status: number, message?: string, error?: unknown): void {
    const { response } = this;
    if (this.gone) return;
    if (tracesRefusal(this, () => this.refuse(status, message, error))) return;
    if (response.raw.headersSent) {
      this.cut();
      return;
    }
    response.responded = true;
    response.reclaim();
    response.dropContentHeaders();
    response.status_code = status;
    response.status = undefined;
    // A head that could not be written has left its reason phrase: the error page would be sent as
    // `500 OK`.
    if (!this.http2) (response.raw as ServerResponse).statusMessage = "";
    response.body = undefined;
    response.trailers = undefined;
    const request = this.head === unparsedHead ? undefined : this.request;
    const event: HttpErrorEvent = { code: status, message, error, request, response };
    const page = errorPage(this.service.environment, event, this.request.host);
    if (page instanceof Promise) page.then((text) => sendPage(this, text, event));
    else sendPage(this, page, event);
  }

  /** Responds to an error with its status and error page, and logs server errors. */
  fail(given: unknown, failure?: Failure): void {
    const thrown = readableThrown(given);
    // A failing stream reports its error twice: to the context and to its reader.
    if (typeof thrown === "object" && thrown !== null && thrown === this.#failure) return;
    this.#failure = thrown;
    const { status, message } = failure ?? classify(thrown);
    if (this.gone || isAbandoned(this.response.raw)) {
      // The client has its response, so the error is only logged.
      if (this.#complete) this.report(thrown);
      return;
    }
    if (status < 400 && !this.response.responded) {
      this.#respond(status);
      return;
    }
    if (status >= 500) this.report(thrown);
    this.refuse(status, message, thrown);
  }

  /**
   * Handles a rejected handler. A handler that was stopped because its response or its module ended
   * has not failed.
   */
  rejected(given: unknown, failure?: Failure): void {
    const reason = readableThrown(given);
    const isStopped = ModhostError.is(reason)
      ? reason.code === "STREAM_CLOSED"
      : reason instanceof Error && reason.name === "AbortError";
    if (isStopped && this.response.responded) return;
    if (isStopped && this.request.leaving.aborted) this.refuse(503);
    else this.fail(reason, failure);
  }

  /** Calls the handler of a route, or returns its constant value. */
  protected callHandler({ handler, mount }: Route, argument: string | undefined): unknown {
    if (typeof handler !== "function") return handler;
    return mount.usage.run(handler as (event: HttpEvent, argument?: string) => unknown, this, argument);
  }

  /** Logs the error of the request in the log of the module that failed. */
  report(thrown: unknown): void {
    if (this.trace !== undefined) this.trace.error = thrown;
    const { owner, name } = this.#failedMiddleware ?? { owner: this.#mount?.owner, name: undefined };
    if (owner !== undefined) usageOf(owner).requestFailed(thrown);
    this.reportText(name === undefined ? "failed" : `failed in the middleware ${name}`, stackOf(thrown));
  }

  reportText(what: string, text: string): void {
    const owner = this.#failedMiddleware?.owner ?? this.#mount?.owner;
    const log = owner?.log ?? this.service.environment.log;
    const { id, method, url } = this.request;
    log.error("request %s %s %s %s: %s", id, method, url.raw_path, what, text);
  }

  attributeError(owner: Module, name?: string): void {
    this.#failedMiddleware ??= { owner, name };
  }

  /**
   * Called when the handler's module is being unloaded. Streams that do not end by themselves are
   * asked to end.
   */
  retire(): void {
    this.inContext(() => this.request.leave());
  }

  /** Runs a callback of the handler's module in that module's asynchronous context. */
  inContext<R>(code: () => R): R {
    return this.#mount === undefined ? code() : this.#mount.usage.run(code);
  }

  describe(): string {
    return `${this.request.method} ${this.request.url.raw_path} (${Math.round((performance.now() - this.began) / 1000)} s)`;
  }

  get endsOnLeave(): boolean {
    return this.switched || this.request.watchesLeaving;
  }

  /** Counts the bytes of this request for the token, until the request is over. */
  bear(token: CountingToken): void {
    this.#token = token;
    if (!this.gone) token.begin(this);
  }

  get received(): number {
    return this.request.received;
  }

  get sent(): number {
    return this.response.bytes;
  }

  revoke(): void {
    this.cut();
  }

  /**
   * Ends the connection (or the HTTP/2 stream) at once, so that the client sees that the response
   * is incomplete.
   */
  cut(): void {
    const { raw } = this.response;
    if (this.http2) (raw as Http2ServerResponse).stream?.close(INTERNAL_ERROR);
    else raw.destroy();
  }

  /** Whether the connection is closed after this response. */
  get closing(): boolean {
    return closesConnection(this);
  }

  /**
   * Sends the last bytes of the response, and reads and drops the rest of the request body within
   * limits.
   */
  end(data?: string | Uint8Array): void {
    endResponse(this, data);
  }

  /** Requires the client to make progress in reading until `unwatchWriting` is called. */
  watchWriting(): void {
    this.#sending ??= new Sending(this);
    this.#sending.watch();
  }

  unwatchWriting(): void {
    this.#sending?.unwatch();
  }

  enter(): Promise<void> | undefined {
    this.#sending ??= new Sending(this);
    return this.#sending.enter();
  }

  entered(): void {
    this.#sending?.entered();
  }

  /** Runs one candidate. Returns true when it has responded or will, and false to try the next. */
  #call(candidate: Candidate): boolean {
    const { route, argument } = candidate;
    this.#route = route;
    if (this.trace !== undefined) Object.assign(this.trace, { module: route.mount.owner.name, route: route.key });
    if (route.kind === "redirect") {
      const { query } = this.request.url;
      this.response.headers.location = `${encodePath(this.request.path)}/${query === undefined ? "" : `?${query}`}`;
      // A 301 would make clients repeat other methods as GET, without the body.
      return this.#respond(this.request.method === "GET" || this.request.method === "HEAD" ? 301 : 308);
    }
    const { usage } = route.mount;
    const outer = usage.enter();
    const begun = performance.now();
    try {
      return this.#respond(this.callHandler(route, argument));
    } catch (thrown) {
      this.fail(thrown);
      return true;
    } finally {
      this.#busy += usage.leave(outer, begun);
    }
  }

  /**
   * Turns a handler's value into the response (contract, part 4). Returns true when the request has
   * a response or will have one, and false when the next handler is to be called.
   */
  #respond(value: unknown): boolean {
    const { response } = this;
    if (response.responded) {
      if (isThenable(value)) {
        value.then(discard, (reason: unknown) => this.rejected(reason));
      } else discard(value);
      return true;
    }
    switch (typeof value) {
      case "string":
        return response.send(value);
      case "number":
        return this.#respondStatus(value);
      case "boolean":
        return value || response.send("");
      case "undefined":
        return false;
      case "object":
        return value === null ? false : this.#respondObject(value);
      default:
        throw resultInvalid(this.#routeName, faultOf(value) as NonNullable<ReturnType<typeof faultOf>>);
    }
  }

  #respondStatus(status: number): boolean {
    if (!Number.isInteger(status) || status < 200 || status > 999) {
      throw new RangeError(`A handler returned ${status}: a status is a whole number from 200 to 999`);
    }
    if (status >= 400) this.refuse(status);
    else {
      this.response.status_code = status;
      this.response.status = undefined;
      this.response.send();
    }
    return true;
  }

  #respondObject(value: object): boolean {
    if (isThenable(value)) {
      // Awaiting a thenable that is not a native promise runs code of the module.
      const promise = value instanceof Promise ? value : this.inContext(() => Promise.resolve(value));
      promise.then(
        (settled) => {
          try {
            if (this.gone) discard(settled);
            else if (!this.#respond(settled)) this.run();
          } catch (error) {
            this.fail(error);
          }
        },
        (reason: unknown) => this.rejected(reason),
      );
      return true;
    }
    if (value instanceof Error) {
      this.fail(value);
      return true;
    }
    if (value instanceof Uint8Array || isStream(value)) return this.response.send(value as Body);
    const fault = faultOf(value);
    if (fault !== undefined) throw resultInvalid(this.#routeName, fault);
    const stray = strayField(value);
    if (stray !== undefined) {
      const { field, meant = "status_code, headers or body" } = stray;
      this.#advise(`returned an object with ${field}, which no response has: write ${meant}`);
    }
    const { response } = this;
    const { headers, status_code, status, body, trailers } = value as ResponseFields;
    assignHeaders(response.headers, headers);
    if (status_code !== undefined) response.status_code = status_code;
    if (status !== undefined) response.status = status;
    if (trailers !== undefined) response.trailers = trailers;
    return response.send(body);
  }

  /** The route whose value is the response, for messages: `GET /hello/*`. */
  get #routeName(): string {
    const { method, path } = this.#route ?? { method: this.request.method, path: this.request.path };
    return `${method} ${path}`;
  }

  /** Logs a hint for the author of the route, once. */
  #advise(text: string): void {
    if (this.#route !== undefined) advise(this.#route, text);
  }

  #enter(mount: Mount): void {
    if (this.#mount === mount) return;
    this.#leave();
    this.#mount = mount;
    this.#slot = mount.enter(this);
  }

  #leave(): void {
    if (this.#slot !== undefined) this.#mount?.leave(this.#slot);
    this.#slot = undefined;
  }

  /** The request has a body that is not read yet. */
  get hasBody(): boolean {
    return hasUnreadBody(this);
  }

  /** Ends the request: its response is complete, or the client has left. */
  over(): void {
    if (this.gone) return;
    this.gone = true;
    const { request, response } = this;
    // A reset HTTP/2 stream also counts as finished, although `end` was never called. A client that
    // has all bytes of Content-Length may close before the body reports its end.
    this.#complete = response.delivered || (response.raw.writableEnded && response.raw.writableFinished);
    this.#sending?.over();
    if (!this.#complete) this.inContext(() => request.abort());
    if (response.on_destroy !== undefined) this.#destroyed(response.on_destroy);
    this.#leave();
    this.#token?.end(this);
    this.settled?.();
    const status = response.raw.headersSent ? response.raw.statusCode : 0;
    this.announce(status, this.#complete);
    if (this.trace === undefined) return;
    const end = this.switched ? { status: 101, complete: true } : { status, complete: this.#complete };
    endTrace(this.trace, { module: this.#mount?.owner.name, route: keyOf(this.#route, request), ...end });
  }

  /** Announces `http-finished`, once, if any hook listens. */
  announce(status: number, complete: boolean): void {
    const { request, response } = this;
    if (this.#announced || !this.service.environment.hasHooks("http-finished")) return;
    this.#announced = true;
    const event: HttpFinishedEvent = {
      request,
      response,
      complete,
      status,
      bytes: response.bytes,
      received: request.received,
      duration: performance.now() - this.began,
      busy: this.#busy,
      app: this.#mount?.name,
      module: this.#mount?.owner.name,
      route: keyOf(this.#route, request),
    };
    this.service.environment.announce("http-finished", event, request.host);
  }

  #destroyed(handler: () => unknown): void {
    const owner = this.#mount?.owner;
    const failed = (thrown: unknown) => {
      const error = readableThrown(thrown);
      if (owner !== undefined) usageOf(owner).fault("running on_destroy of a request", error);
      this.reportText("failed in on_destroy", stackOf(error));
    };
    this.inContext(() => Promise.try(handler)).catch(failed);
  }
}

function isStream(value: object): boolean {
  return value instanceof ReadableStream || Symbol.asyncIterator in value;
}
