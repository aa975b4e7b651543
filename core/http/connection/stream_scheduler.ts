/** Limits how many HTTP/2 requests begin in one turn of the event loop, over all sessions. */
import type { Http2ServerRequest, Http2Session, ServerHttp2Stream } from "node:http2";
import { ENHANCE_YOUR_CALM } from "../../util/http2.ts";
import type { IncomingMessage, ServerResponse } from "../../util/node_http.ts";

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

interface Waiting {
  readonly stream: ServerHttp2Stream;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly serve: Serve;
}

/** Requests that begin in one turn. The others begin in the next turns. */
const MAX_BEGUN = 32;
/**
 * A session with this many waiting streams is ended when half of them were reset. A client that
 * cancels requests it does not need has fewer.
 */
const MAX_WAITING = 256;
/** The limit that replaces `MAX_WAITING` while many streams are being reset. */
const MAX_WAITING_BUSY = 32;
/**
 * Number of recent resets, over all sessions, above which `MAX_WAITING_BUSY` applies. Only streams
 * that were reset before they began count.
 */
const MAX_RESET = 512;
/** Milliseconds after which the number of recent resets has halved. */
const HALF_LIFE = 1000;

/**
 * Protects the server from rapid resets: a stream costs its client little and the server much, even
 * when it is reset at once. Requests that arrived in one network read begin over several turns, so
 * that other work runs in between, and streams that are reset meanwhile never begin. A session that
 * mostly resets streams is ended, earlier when many streams of all sessions are being reset.
 */
export class StreamScheduler {
  #queue: Waiting[] = [];
  /** By session, the streams that arrived in this turn and wait. */
  readonly #came = new Map<Http2Session, Waiting[]>();
  #begun = 0;
  #reset = 0;
  #resetAt = 0;
  #isTurning = false;

  /** Serves the request in this turn, or in one of the next. */
  take(request: IncomingMessage, response: ServerResponse, serve: Serve): void {
    if (!this.#isTurning) {
      this.#isTurning = true;
      setImmediate(() => this.#turn());
    }
    if (this.#begun < MAX_BEGUN && this.#queue.length === 0) {
      this.#begun += 1;
      serve(request, response);
      return;
    }
    const { stream } = request as unknown as Http2ServerRequest;
    const { session } = stream;
    if (session === undefined) return;
    const waiting = { stream, request, response, serve };
    this.#queue.push(waiting);
    let own = this.#came.get(session);
    if (own === undefined) this.#came.set(session, (own = []));
    own.push(waiting);
    this.#judge(session, own);
  }

  #judge(session: Http2Session, own: readonly Waiting[]): void {
    const most = this.#recent() > MAX_RESET ? MAX_WAITING_BUSY : MAX_WAITING;
    if (own.length < most || own.length % MAX_WAITING_BUSY !== 0) return;
    const reset = own.filter(({ stream }) => isGone(stream)).length;
    if (reset * 2 < own.length) return;
    this.#count(reset);
    this.#came.delete(session);
    // The rest of its input is not read.
    session.destroy(undefined, ENHANCE_YOUR_CALM);
  }

  #turn(): void {
    this.#begun = 0;
    this.#came.clear();
    let at = 0;
    let reset = 0;
    for (; at < this.#queue.length && this.#begun < MAX_BEGUN; at += 1) {
      const { stream, request, response, serve } = this.#queue[at] as Waiting;
      if (isGone(stream)) {
        reset += 1;
        continue;
      }
      this.#begun += 1;
      serve(request, response);
    }
    this.#count(reset);
    this.#queue = this.#queue.slice(at);
    this.#isTurning = this.#queue.length > 0;
    if (this.#isTurning) setImmediate(() => this.#turn());
    else this.#begun = 0;
  }

  #count(reset: number): void {
    if (reset > 0) this.#reset = this.#recent() + reset;
  }

  /** Number of streams that were reset before they began; older resets count less. */
  #recent(): number {
    const now = performance.now();
    this.#reset *= 0.5 ** ((now - this.#resetAt) / HALF_LIFE);
    this.#resetAt = now;
    return this.#reset;
  }
}

function isGone(stream: ServerHttp2Stream): boolean {
  return stream.closed || stream.destroyed;
}
