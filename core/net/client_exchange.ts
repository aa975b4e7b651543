/** One request to one address and its answer: progress is watched, both bodies flow no faster than they are read. */
import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { RunningTimeout } from "../util/running_timeout.ts";
import { RequestError } from "./client_errors.ts";
import { type Outgoing, wireOf } from "./client_request.ts";

/** Seconds and bytes, all set. */
export interface Limits {
  readonly timeout: number;
  readonly body_timeout: number;
  readonly connect_timeout: number;
  readonly max_header: number;
  readonly max_body: number;
}

export interface Answer {
  readonly code: number;
  /** Lower-case names with dashes. Repeated fields are joined with ", "; `set-cookie` is a list. */
  readonly headers: IncomingHttpHeaders;
  /** The protocol that the connection speaks: "1.1", or "2" where the client allows it. */
  readonly http_version: string;
  /** Destroyed with a RequestError when the answer breaks off. Destroying it ends the exchange. */
  readonly body: Readable;
}

/**
 * Time is measured ourselves and not by undici, whose clocks start anew with every interim answer, leave out waiting
 * for a connection, and run half a second late.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** Resolves with the head of the answer; rejects with a RequestError. */
  readonly answer: Promise<Answer>;
  /** Resolves when the answer has arrived in full or the exchange has failed. */
  readonly over: Promise<void>;
  readonly #url: string;
  readonly #limits: Limits;
  readonly #answered: PromiseWithResolvers<Answer> = Promise.withResolvers();
  readonly #ended: PromiseWithResolvers<void> = Promise.withResolvers();
  #source: Readable | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #body: Readable | undefined;
  #failure: RequestError | undefined;
  #finished = false;
  #received = 0;
  /** Runs while the peer is awaited. */
  #timer: RunningTimeout | undefined;

  /** Sends the request. */
  constructor(dispatcher: Dispatcher, outgoing: Outgoing, limits: Limits) {
    this.answer = this.#answered.promise;
    this.over = this.#ended.promise;
    this.#url = outgoing.url.href;
    this.#limits = limits;
    try {
      const { headers, payload, source } = wireOf(outgoing);
      this.#source = source;
      // A source may fail before undici listens, or after it has stopped: an error nobody hears would end the process.
      source?.on("error", (error) =>
        this.fail(new RequestError("body-failed", this.#url, { reason: error.message }, error)),
      );
      this.#watch();
      const { origin, pathname, search } = outgoing.url;
      dispatcher.dispatch(
        { origin, path: pathname + search, method: outgoing.method, headers, body: payload, ...untimed },
        this,
      );
    } catch (error) {
      this.onResponseError(undefined, error as Error);
    }
  }

  /** Ends the exchange at once, with its connection; does nothing when it is over. */
  fail(error: RequestError): void {
    if (!this.#finish()) return;
    this.#failure = error;
    this.#answered.reject(error);
    this.#body?.destroy(error);
    this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== undefined) controller.abort(this.#failure);
  }

  onBodySent(): void {
    this.#moved();
  }

  onResponseStart(controller: Dispatcher.DispatchController, code: number, headers: IncomingHttpHeaders): void {
    if (code < 200) return;
    this.#body = new Readable({
      highWaterMark: 64 * 1024,
      read: () => {
        if (this.#timer === undefined) this.#watch();
        controller.resume();
      },
      destroy: (error, done) => {
        this.fail(new RequestError("cancelled", this.#url));
        done(error);
      },
    });
    // A reader that has left the body alone is not brought down by a peer that breaks off.
    this.#body.on("error", () => {});
    this.#watch();
    // HTTP/1 gives the raw header as a list, HTTP/2 as an object.
    const http_version = Array.isArray(controller.rawHeaders) ? "1.1" : "2";
    this.#answered.resolve({ code, headers: joined(headers), http_version, body: this.#body });
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    const { max_body } = this.#limits;
    this.#received += piece.length;
    if (this.#received > max_body) {
      this.fail(new RequestError("too-large", this.#url, { limit: max_body }));
      return;
    }
    this.#moved();
    if (this.#body?.push(piece)) return;
    this.#unwatch();
    controller.pause();
  }

  onResponseEnd(): void {
    if (this.#finish()) this.#body?.push(null);
  }

  onResponseError(_controller: unknown, error: Error): void {
    const { connect_timeout, max_header } = this.#limits;
    const details = { awaited: "connection", bound: `connect_timeout: ${connect_timeout} s`, limit: max_header };
    // undici calls it a wrong length, too, when the connection ends before the length is reached.
    const isCutOff = this.#body !== undefined && error.name === "ResponseContentLengthMismatchError";
    this.fail(
      isCutOff
        ? new RequestError("connection-closed", this.#url, {}, error)
        : RequestError.from(error, this.#url, details),
    );
  }

  /** False when it was over before. */
  #finish(): boolean {
    if (this.#finished) return false;
    this.#finished = true;
    this.#unwatch();
    this.#source?.destroy();
    this.#ended.resolve();
    return true;
  }

  #watch(): void {
    this.#unwatch();
    if (this.#finished) return;
    const seconds = this.#body === undefined ? this.#limits.timeout : this.#limits.body_timeout;
    this.#timer = new RunningTimeout(seconds * 1000, () => this.#expire());
  }

  #moved(): void {
    this.#timer?.refresh();
  }

  #unwatch(): void {
    this.#timer?.clear();
    this.#timer = undefined;
  }

  #expire(): void {
    // While it is our own source that is awaited, the peer cannot be blamed.
    if (this.#source?.readableFlowing === true && !this.#source.readableEnded) {
      this.#watch();
      return;
    }
    const { timeout, body_timeout } = this.#limits;
    const details =
      this.#body === undefined
        ? { awaited: "answer", bound: `timeout: ${timeout} s` }
        : { awaited: "further piece of its answer", bound: `body_timeout: ${body_timeout} s` };
    this.fail(new RequestError("timeout", this.#url, details));
  }
}

const untimed = { headersTimeout: 0, bodyTimeout: 0 };

function joined(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const result: IncomingHttpHeaders = Object.create(null);
  for (const [name, value] of Object.entries(headers)) {
    if (name === "set-cookie") result[name] = [value ?? []].flat();
    else if (!name.startsWith(":")) result[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return result;
}

/**
 * The whole body in one piece. The bytes are copied together as they come: for a peer that sends them one by one, a
 * list of them would take a hundredfold of memory.
 */
export function collect(body: Readable): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let buffer = Buffer.alloc(0);
  let length = 0;
  if (body.errored) reject(body.errored);
  body.on("error", reject);
  body.on("end", () => resolve(buffer.subarray(0, length)));
  body.on("data", (piece: Buffer) => {
    const needed = length + piece.length;
    if (needed > buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * buffer.length));
      buffer.copy(larger, 0, 0, length);
      buffer = larger;
    }
    length += piece.copy(buffer, length);
  });
  return promise;
}

const MAX_DISCARDED_BYTES = 64 * 1024;
const MAX_DISCARD_TIME = 1000;

/** Reads a body that nobody wants, so that its connection can be used again; a long or slow one is cut off instead. */
export function discard(body: Readable): Promise<void> {
  if (body.closed) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(() => body.destroy(), MAX_DISCARD_TIME);
  let length = 0;
  body.on("data", (piece: Buffer) => {
    length += piece.length;
    if (length > MAX_DISCARDED_BYTES) body.destroy();
  });
  body.on("close", () => {
    clearTimeout(timer);
    resolve();
  });
  return promise;
}
