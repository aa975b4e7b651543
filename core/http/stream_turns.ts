/** Requests of HTTP/2: so many begin in one turn of the event loop, of all sessions together. */
import type { Http2ServerRequest, Http2Session, ServerHttp2Stream } from "node:http2";
import type { IncomingMessage, ServerResponse } from "../util/node_http.ts";
import { ENHANCE_YOUR_CALM } from "./http2.ts";

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

interface Waiting {
  readonly stream: ServerHttp2Stream;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly serve: Serve;
}

/** Begun in a turn; those that came with them begin in the next ones. */
const MAX_BEGUN = 32;
/** Of so many waiting streams of a session half may be reset; a client that cancels what it does not need has fewer. */
const MAX_WAITING = 256;
/** The same once others have reset many. */
const MAX_WAITING_BUSY = 32;
/** Streams that were reset before they began, of all sessions, until each session is looked at sooner. */
const MAX_RESET = 512;
/** Half of those that were reset are forgotten in so many milliseconds. */
const HALF_LIFE = 1000;

/**
 * A stream costs little to its client and much to the server, also when it is reset at once (rapid reset). What came in one
 * piece of the network begins over some turns, so that others come in between, and what was reset meanwhile never begins.
 * A session that lives of resets is ended, the sooner the more of them there are of all sessions.
 */
export class StreamTurns {
  #queue: Waiting[] = [];
  /** Of each session, those that have come in this turn and wait. */
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
    // Whatever else it has sent is not read.
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

  /** Streams that were reset before they began, the older the less. */
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
