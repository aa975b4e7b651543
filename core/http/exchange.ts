import type { ServerResponse } from "node:http";
import { constants, Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { ModhostError, reasonOf } from "../errors.ts";
import type { HttpErrorEvent, HttpEvent, HttpFinishedEvent } from "../types.ts";
import { answer } from "./answer.ts";
import type { NodeRequest } from "./body.ts";
import { addCorsHeaders, addPreflightHeaders } from "./cors.ts";
import { errorPage } from "./error_page.ts";
import { classify, plainPage } from "./failure.ts";
import type { HeadFacts } from "./head.ts";
import { encodePath, type Target } from "./paths.ts";
import type { Flow } from "./progress.ts";
import { Request } from "./request.ts";
import { type NodeResponse, Response } from "./response.ts";
import type { ActiveRequest, AppMount, Candidate, Resolution } from "./routes.ts";
import type { HttpService } from "./service.ts";

/** An unread rest of a body up to this size is simply taken in, so that the connection can be used again. */
const smallRest = 64 * 1024;

/** Headers that describe a body, which an error page replaces. */
const bodyHeaders = ["content_type", "content_length", "content_encoding", "content_range", "etag", "last_modified"];

/** One request and its answer: runs the handlers, and knows when it is over. The event of spec 2. */
export class Exchange implements HttpEvent, ActiveRequest {
  readonly service: HttpService;
  readonly request: Request;
  readonly response: Response;
  readonly http2: boolean;
  /** The answer is complete, or the client went away. */
  gone = false;
  readonly #head: HeadFacts;
  readonly #began = performance.now();
  #resolution: Resolution | undefined;
  #next = 0;
  #mount: AppMount | undefined;
  #writing: Flow | undefined;

  constructor(
    service: HttpService,
    raw: NodeRequest,
    reply: NodeResponse,
    head: HeadFacts,
    target: Target,
    path: string,
    host: string,
  ) {
    this.service = service;
    this.#head = head;
    this.http2 = raw instanceof Http2ServerRequest;
    this.request = new Request(this, raw, target, path, host);
    this.response = new Response(this, reply);
    reply.on("close", () => this.#over());
  }

  /** May trailers follow the body? */
  get canTrail(): boolean {
    return this.request.method !== "HEAD" && this.request.httpversion !== "1.0";
  }

  /** Answers by the routes of the table. */
  begin(resolution: Resolution): void {
    this.#resolution = resolution;
    const { request, response } = this;
    const { cors } = resolution;
    const readable = cors !== undefined && addCorsHeaders(cors, request.headers.origin, response.headers);
    response.variesByOrigin = cors?.origins !== "*" && cors !== undefined;
    if (resolution.candidates.length > 0) {
      this.run();
      return;
    }
    if (resolution.allowed.length === 0) {
      // The apps of a server that stops are gone, not unknown.
      this.refuse(this.service.stopping ? 503 : 404);
      return;
    }
    const allowed = [...new Set([...resolution.allowed, "OPTIONS"])].sort();
    response.headers.allow = allowed.join(", ");
    if (request.method !== "OPTIONS") {
      this.refuse(405);
      return;
    }
    const preflight = readable && request.headers.access_control_request_method !== undefined;
    if (preflight) addPreflightHeaders(cors, allowed, response.headers);
    response.status_code = preflight ? 204 : 200;
    response.send();
  }

  /** Tries the candidates that are left, until one answers (spec 4). */
  run(): void {
    const { candidates } = this.#resolution as Resolution;
    while (this.#next < candidates.length) {
      const candidate = candidates[this.#next] as Candidate;
      const { mount } = candidate.route;
      // A module that leaves waits for the requests that it has, and takes no others.
      if (mount.retired && mount !== this.#mount) {
        this.#next += 1;
        continue;
      }
      this.#enter(mount);
      if (this.#bodyMissing()) {
        const coding = this.request.headers.content_encoding;
        if (coding !== undefined && coding.toLowerCase() !== "identity") {
          this.fail(new ModhostError("BODY_ENCODED", { coding }));
          return;
        }
        if (mount.provider.streaming_uploads !== true) {
          this.#buffer();
          return;
        }
      }
      this.#next += 1;
      if (this.#call(candidate)) return;
    }
    this.refuse(404);
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
    for (const name of bodyHeaders) delete response.headers[name];
    response.status_code = status;
    response.status = undefined;
    response.body = undefined;
    response.trailers = undefined;
    const event: HttpErrorEvent = { code: status, message, error, request: this.request, response };
    const page = errorPage(this.service.environment, event, this.request.host);
    if (page instanceof Promise) page.then((text) => this.#page(text, event));
    else this.#page(page, event);
  }

  /** Answers what was thrown, rejected or found impossible on the way; the cause goes to the log. */
  fail(thrown: unknown): void {
    if (this.gone) return;
    const { status, message } = classify(thrown);
    if (status < 400 && !this.response.answered) {
      answer(this, status);
      return;
    }
    if (status >= 500) {
      const log = this.#mount?.owner.log ?? this.service.environment.log;
      const cause = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
      log.error("request %s %s %s failed: %s", this.request.id, this.request.method, this.request.url.raw_path, cause);
    }
    this.refuse(status, message, thrown);
  }

  /** Ends the connection (or the HTTP/2 stream) at once: the client sees that the answer is not complete. */
  cut(): void {
    const { raw } = this.response;
    if (this.http2) (raw as Http2ServerResponse).stream?.close(constants.NGHTTP2_INTERNAL_ERROR);
    else raw.destroy();
  }

  /** True when the connection is closed after this answer, because an unread body is on its way. */
  get closing(): boolean {
    if (this.http2 || !this.#bodyMissing() || this.request.incoming.taken) return this.service.stopping && !this.http2;
    return (
      this.#head.contentLength === undefined ||
      this.#head.contentLength > smallRest ||
      this.service.expects(this.request.raw)
    );
  }

  /** Sends the last bytes; a body that the client is still sending is first taken in, within bounds. */
  end(data?: string | Uint8Array): void {
    const raw = this.response.raw as ServerResponse;
    const { request } = this;
    if (!this.#bodyMissing() || request.raw.complete) {
      if (data === undefined) raw.end();
      else raw.end(data);
      return;
    }
    if (this.http2) {
      raw.end(data);
      request.incoming.linger().then(() => {
        const { stream } = request.raw as Http2ServerRequest;
        if (!request.raw.complete) stream.close(constants.NGHTTP2_NO_ERROR);
      });
      return;
    }
    if (data !== undefined) raw.write(data);
    else raw.flushHeaders();
    request.incoming.linger().then(() => {
      const unfinished = !request.raw.complete;
      raw.end(() => {
        if (unfinished) request.raw.socket.destroySoon();
      });
    });
  }

  /** From now until `unwatchWriting` the client must take in what is written to it. */
  watchWriting(): void {
    this.#writing ??= { moved: () => this.#written(), waiting: () => true, expired: () => this.cut() };
    this.service.watch.add(this.#writing);
  }

  unwatchWriting(): void {
    if (this.#writing !== undefined) this.service.watch.delete(this.#writing);
  }

  #page(page: string | Uint8Array, event: HttpErrorEvent): void {
    const { response } = this;
    if (this.gone) return;
    try {
      response.write(page);
    } catch (error) {
      this.service.environment.log.error("The page of request %s cannot be sent: %s", this.request.id, reasonOf(error));
      response.headers = {};
      response.write(plainPage(response, event));
    }
  }

  /** True when the candidate has answered or will; false to go on with the next. */
  #call(candidate: Candidate): boolean {
    const { route, argument } = candidate;
    if (route.kind === "redirect") {
      const { query } = this.request.url;
      this.response.headers.location = `${encodePath(this.request.path)}/${query === undefined ? "" : `?${query}`}`;
      // 301 would turn other methods into GET, and lose the body.
      return answer(this, this.request.method === "GET" || this.request.method === "HEAD" ? 301 : 308);
    }
    try {
      const { handler } = route;
      return answer(this, typeof handler === "function" ? handler(this, argument as string) : handler);
    } catch (thrown) {
      this.fail(thrown);
      return true;
    }
  }

  #enter(mount: AppMount): void {
    if (this.#mount === mount) return;
    this.#mount?.leave(this);
    this.#mount = mount;
    mount.active.add(this);
  }

  #bodyMissing(): boolean {
    if (this.request.buffered !== undefined) return false;
    if (this.http2) return !(this.request.raw as Http2ServerRequest).stream.endAfterHeaders;
    return this.#head.chunked || (this.#head.contentLength ?? 0) > 0;
  }

  /** Reads the body, then goes on with the handlers. */
  #buffer(): void {
    const { request } = this;
    const limit = this.service.settings.maxContentSize;
    if ((this.#head.contentLength ?? 0) > limit) {
      this.fail(new ModhostError("BODY_TOO_LARGE", { limit }));
      return;
    }
    request.incoming.read(limit).then(
      (bytes) => {
        request.buffered = bytes;
        if (!this.gone) this.run();
      },
      (error: unknown) => this.fail(error),
    );
  }

  #written(): number {
    // On HTTP/1 the handle knows what the kernel has really taken; on HTTP/2 a stream only tells what waits.
    const handle = this.http2
      ? undefined
      : (this.request.raw.socket as unknown as { _handle?: HandleCounters })._handle;
    if (handle?.bytesWritten === undefined) return this.response.bytes - this.response.raw.writableLength;
    return handle.bytesWritten - (handle.writeQueueSize ?? 0);
  }

  #over(): void {
    if (this.gone) return;
    this.gone = true;
    const { request, response } = this;
    const complete = response.raw.writableFinished;
    if (this.#writing !== undefined) this.service.watch.delete(this.#writing);
    if (!complete) request.abort();
    if (response.on_destroy !== undefined) this.#destroyed(response.on_destroy);
    this.#mount?.leave(this);
    if (!this.service.environment.hasHooks("http-finished")) return;
    const event: HttpFinishedEvent = {
      request,
      response,
      complete,
      status: response.raw.headersSent ? response.raw.statusCode : 0,
      bytes: response.bytes,
      duration: performance.now() - this.#began,
      app: this.#mount?.name,
    };
    this.service.environment.announce("http-finished", event, request.host);
  }

  #destroyed(handler: () => unknown): void {
    const failed = (error: unknown) =>
      this.service.environment.log.error("on_destroy of request %s failed: %s", this.request.id, reasonOf(error));
    Promise.try(handler).catch(failed);
  }
}

interface HandleCounters {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}
