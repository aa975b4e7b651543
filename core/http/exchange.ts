import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Context } from "koa";
import type { DefaultHeaders, HttpErrorEvent, HttpEvent, HttpFinishedEvent, Module, RequestTrace } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import type { CountingToken, TokenUse } from "../util/token_use.ts";
import { usageOf } from "../util/usage.ts";
import { advise, untypedAdvice } from "./advice.ts";
import { answer } from "./answer.ts";
import { addCorsHeaders } from "./cors.ts";
import { endAnswer } from "./ending.ts";
import { errorPage, sendPage } from "./error_page.ts";
import { classify, type Failure } from "./failure.ts";
import type { HeadFacts } from "./head.ts";
import { INTERNAL_ERROR, isHttp2 } from "./http2.ts";
import { bindContext } from "./koa.ts";
import type { LayeredExchange } from "./layered_answer.ts";
import { isAbandoned, type NodeRequest } from "./node_messages.ts";
import { encodePath, type Target } from "./paths.ts";
import { Request, type RequestService } from "./request.ts";
import { Response } from "./response.ts";
import { type Candidate, type Mount, type Route, takesAnything } from "./route.ts";
import type { Resolution } from "./routes.ts";
import { Sending } from "./sending.ts";
import type { HttpEnvironment, HttpSettings } from "./settings.ts";
import { isAdmitted } from "./token_check.ts";
import { endTrace } from "./tracing.ts";
import { closesConnection, hasUnreadBody, takesBodyAsItComes } from "./unread_body.ts";
import { answerUnrouted, missing } from "./unrouted.ts";

/** What an exchange needs of the service that it came to. */
export interface ExchangeService extends RequestService {
  readonly settings: HttpSettings;
  readonly environment: HttpEnvironment;
  /** No further request is taken on a connection once its current one is answered. */
  readonly stopping: boolean;
  /** The client waits for an invitation before it sends its body. */
  expects(request: NodeRequest): boolean;
}

/** One request and its answer: runs the handlers, and knows when it is over. The event of spec 2. */
export class Exchange implements HttpEvent, LayeredExchange, TokenUse {
  readonly service: ExchangeService;
  readonly request: Request;
  readonly response: Response;
  readonly http2: boolean;
  readonly head: HeadFacts;
  /** The answer is complete, or the client went away. */
  gone = false;
  /** Tells the middleware before the apps that the handlers are done, though nothing was put into the context. */
  settled: (() => void) | undefined = undefined;
  /** While somebody traces it. */
  trace: RequestTrace | undefined = undefined;
  /** Set when it is over: the system has the whole answer. */
  #complete = false;
  /** Whose value is the answer. */
  #route: Route | undefined;
  readonly began = performance.now();
  #resolution: Resolution | undefined;
  #next = 0;
  #mount: Mount | undefined;
  /** Among the requests of the app. */
  #place: number | undefined;
  /** Of middleware that failed. */
  #blamed: Module | undefined;
  #sending: Sending | undefined;
  #token: CountingToken | undefined;
  #announced = false;
  /** Milliseconds in handlers, up to their first await; kept while somebody listens to `http-finished`. */
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

  /** The app whose handler is asked. */
  get mount(): Mount | undefined {
    return this.#mount;
  }

  get place(): string {
    const { method, path } = this.#route ?? { method: this.request.method, path: this.request.path };
    return `${method} ${path}`;
  }

  get uploadPause(): number {
    return this.#mount?.provider.upload_pause ?? 0;
  }

  get defaults(): DefaultHeaders | undefined {
    return this.#mount === undefined ? this.service.settings.defaultHeaders : this.#mount.defaults;
  }

  advise(text: string): void {
    if (this.#route !== undefined) advise(this.#route, text);
  }

  untyped(): void {
    if (!takesAnything(this.#route) && !this.service.environment.typesElsewhere) this.advise(untypedAdvice);
  }

  /** The connection speaks another protocol now. */
  protected get switched(): boolean {
    return false;
  }

  /** May trailers follow the body? */
  get canTrail(): boolean {
    return this.request.method !== "HEAD" && this.request.httpversion !== "1.0";
  }

  /** Answers by the routes of the table. */
  begin(resolution: Resolution): void {
    this.#resolution = resolution;
    const { request, response } = this;
    const { cors, routed, candidates } = resolution;
    const readable = cors !== undefined && addCorsHeaders(cors, request.headers.origin, response.headers);
    response.variesByOrigin = cors?.origins !== "*" && cors !== undefined;
    const preflight =
      readable && request.method === "OPTIONS" && request.headers.access_control_request_method !== undefined;
    // Where an app has CORS, the host answers preflights, unless the app has a route for OPTIONS itself.
    if (routed || (candidates.length > 0 && !preflight)) this.run();
    else answerUnrouted(this, resolution, preflight ? cors : undefined);
  }

  /** Tries the candidates that are left, until one answers (contract, part 4). */
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
    else answerUnrouted(this, resolution);
  }

  /** Answers with a status and its error page. */
  refuse(status: number, message?: string, error?: unknown): void {
    const { response } = this;
    if (this.gone) return;
    if (response.raw.headersSent) {
      this.cut();
      return;
    }
    response.answered = true;
    response.reclaim();
    response.dropAnswerHeaders();
    response.status_code = status;
    response.status = undefined;
    // A head that could not be written has left its phrase: the page would be a `500 OK`.
    if (!this.http2) (response.raw as ServerResponse).statusMessage = "";
    response.body = undefined;
    response.trailers = undefined;
    const event: HttpErrorEvent = { code: status, message, error, request: this.request, response };
    const page = errorPage(this.service.environment, event, this.request.host);
    if (page instanceof Promise) page.then((text) => sendPage(this, text, event));
    else sendPage(this, page, event);
  }

  /** Answers what was thrown, rejected or found impossible on the way; the cause goes to the log. */
  fail(thrown: unknown, { status, message }: Failure = classify(thrown)): void {
    if (this.gone || isAbandoned(this.response.raw)) {
      // The client has its answer; errors thrown afterwards go to the log.
      if (this.#complete) this.report(thrown);
      return;
    }
    if (status < 400 && !this.response.answered) {
      answer(this, status);
      return;
    }
    if (status >= 500) this.report(thrown);
    this.refuse(status, message, thrown);
  }

  /** A handler that is stopped because its answer or its module ends has not failed. */
  rejected(reason: unknown, failure?: Failure): void {
    const isStopped = ModhostError.is(reason)
      ? reason.code === "STREAM_CLOSED"
      : reason instanceof Error && reason.name === "AbortError";
    if (isStopped && this.response.answered) return;
    if (isStopped && this.request.leaving.aborted) this.refuse(503);
    else this.fail(reason, failure);
  }

  /** What the handler of a route gives. */
  protected ask({ handler }: Route, argument: string | undefined): unknown {
    return typeof handler === "function" ? handler(this, argument as string) : handler;
  }

  /** Logs what made the request fail, under the module that answers it. */
  report(thrown: unknown): void {
    if (this.trace !== undefined) this.trace.error = thrown;
    const owner = this.#blamed ?? this.#mount?.owner;
    if (owner !== undefined) usageOf(owner).requestFailed(thrown);
    const log = owner?.log ?? this.service.environment.log;
    const { id, method, url } = this.request;
    log.error("request %s %s %s failed: %s", id, method, url.raw_path, stackOf(thrown));
  }

  /** The module in whose middleware an error arose. */
  blame(owner: Module): void {
    this.#blamed ??= owner;
  }

  /** The module of the handler is being unloaded: streams without an end of their own are told to end. */
  retire(): void {
    this.request.leave();
  }

  describe(): string {
    return `${this.request.method} ${this.request.url.raw_path} (${Math.round((performance.now() - this.began) / 1000)} s)`;
  }

  get endsWhenTold(): boolean {
    return this.switched || this.request.isTold;
  }

  /** Its token counts what it moves, until it is over. */
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

  /** Ends the connection (or the HTTP/2 stream) at once: the client sees that the answer is not complete. */
  cut(): void {
    const { raw } = this.response;
    if (this.http2) (raw as Http2ServerResponse).stream?.close(INTERNAL_ERROR);
    else raw.destroy();
  }

  /** True when the connection is closed after this answer. */
  get closing(): boolean {
    return closesConnection(this);
  }

  /** Sends the last bytes; a body that the client is still sending is first taken in, within bounds. */
  end(data?: string | Uint8Array): void {
    endAnswer(this, data);
  }

  /** From now until `unwatchWriting` the client must take in what is written to it. */
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

  /** True when the candidate has answered or will; false to go on with the next. */
  #call(candidate: Candidate): boolean {
    const { route, argument } = candidate;
    this.#route = route;
    if (route.kind === "redirect") {
      const { query } = this.request.url;
      this.response.headers.location = `${encodePath(this.request.path)}/${query === undefined ? "" : `?${query}`}`;
      // 301 would turn other methods into GET, and lose the body.
      return answer(this, this.request.method === "GET" || this.request.method === "HEAD" ? 301 : 308);
    }
    const { usage } = route.mount;
    const outer = usage.enter();
    const begun = performance.now();
    try {
      return answer(this, this.ask(route, argument));
    } catch (thrown) {
      this.fail(thrown);
      return true;
    } finally {
      this.#busy += usage.leave(outer, begun);
    }
  }

  #enter(mount: Mount): void {
    if (this.#mount === mount) return;
    this.#leave();
    this.#mount = mount;
    this.#place = mount.enter(this);
  }

  #leave(): void {
    if (this.#place !== undefined) this.#mount?.leave(this.#place);
    this.#place = undefined;
  }

  /** The request has a body that is not read yet. */
  get hasBody(): boolean {
    return hasUnreadBody(this);
  }

  /** The request ends: its answer is complete, or the client went away. */
  over(): void {
    if (this.gone) return;
    this.gone = true;
    const { request, response } = this;
    // A reset HTTP/2 stream counts as finished too, though `end` was never called. A client that has all the bytes of
    // Content-Length may close before the body says that there are no more.
    this.#complete = response.delivered || (response.raw.writableEnded && response.raw.writableFinished);
    this.#sending?.over();
    if (!this.#complete) request.abort();
    if (response.on_destroy !== undefined) this.#destroyed(response.on_destroy);
    this.#leave();
    this.#token?.end(this);
    this.settled?.();
    const status = response.raw.headersSent ? response.raw.statusCode : 0;
    this.announce(status, this.#complete);
    if (this.trace === undefined) return;
    const end = this.switched ? { status: 101, complete: true } : { status, complete: this.#complete };
    endTrace(this.trace, { module: this.#mount?.owner.name, route: this.#route?.key, ...end });
  }

  /** Announces `http-finished`, once, if any hook listens. */
  protected announce(status: number, complete: boolean): void {
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
      route: this.#route?.key,
    };
    this.service.environment.announce("http-finished", event, request.host);
  }

  #destroyed(handler: () => unknown): void {
    const failed = (error: unknown) =>
      this.service.environment.log.error("on_destroy of request %s failed: %s", this.request.id, reasonOf(error));
    Promise.try(handler).catch(failed);
  }
}
