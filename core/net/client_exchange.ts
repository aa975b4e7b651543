/**
 * One request to one address and its response. It checks the progress, and both bodies flow no
 * faster than they are read.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { RunningTimeout } from "../util/running_timeout.ts";
import { RequestError } from "./client_errors.ts";
import { type Outgoing, wireOf } from "./client_request.ts";

/** Limits in seconds and bytes, all set. */
export interface Limits {
  readonly timeout: number;
  readonly body_timeout: number;
  readonly connect_timeout: number;
  readonly max_header: number;
  readonly max_body: number;
}

export interface ExchangeResponse {
  readonly code: number;
  /** Lower-case names with dashes. Repeated fields are joined with ", "; `set-cookie` is a list. */
  readonly headers: IncomingHttpHeaders;
  /** The protocol of the connection: "1.1", or "2" if the client allows it. */
  readonly http_version: string;
  /** Destroyed with a RequestError if the response breaks off. Destroying it ends the exchange. */
  readonly body: Readable;
}

/**
 * An exchange. It measures timeouts itself, because undici's timers restart with every interim
 * response, ignore the wait for a connection, and run half a second late.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** Resolves with the head of the response; rejects with a RequestError. */
  readonly response: Promise<ExchangeResponse>;
  /** Resolves when the response has arrived completely or the exchange has failed. */
  readonly over: Promise<void>;
  readonly #url: string;
  readonly #limits: Limits;
  readonly #responded: PromiseWithResolvers<ExchangeResponse> = Promise.withResolvers();
  readonly #ended: PromiseWithResolvers<void> = Promise.withResolvers();
  #source: Readable | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #body: Readable | undefined;
  #failure: RequestError | undefined;
  #finished = false;
  #received = 0;
  /** Set while the peer is awaited. */
  #timer: RunningTimeout | undefined;

  /** Sends the request. */
  constructor(dispatcher: Dispatcher, outgoing: Outgoing, limits: Limits) {
    this.response = this.#responded.promise;
    this.over = this.#ended.promise;
    this.#url = outgoing.url.href;
    this.#limits = limits;
    try {
      const { headers, payload, source } = wireOf(outgoing);
      this.#source = source;
      // A source may fail before undici listens, or after it has stopped: an unhandled error would
      // end the process.
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

  /** Ends the exchange at once, with its connection; does nothing if it has ended. */
  fail(error: RequestError): void {
    if (!this.#finish()) return;
    this.#failure = error;
    this.#responded.reject(error);
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
    // An error of the peer must not affect a reader that has stopped reading the body.
    this.#body.on("error", () => {});
    this.#watch();
    // For HTTP/1 the raw header is a list, for HTTP/2 an object.
    const http_version = Array.isArray(controller.rawHeaders) ? "1.1" : "2";
    this.#responded.resolve({ code, headers: joined(headers), http_version, body: this.#body });
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
    // undici also reports a length mismatch if the connection ends before the announced length.
    const isCutOff = this.#body !== undefined && error.name === "ResponseContentLengthMismatchError";
    this.fail(
      isCutOff
        ? new RequestError("connection-closed", this.#url, {}, error)
        : RequestError.from(error, this.#url, details),
    );
  }

  /** Returns false if it had ended before. */
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
    // While the exchange waits for its own source, the peer is not responsible for the delay.
    if (this.#source?.readableFlowing === true && !this.#source.readableEnded) {
      this.#watch();
      return;
    }
    const { timeout, body_timeout } = this.#limits;
    const details =
      this.#body === undefined
        ? { awaited: "response", bound: `timeout: ${timeout} s` }
        : { awaited: "further piece of its response", bound: `body_timeout: ${body_timeout} s` };
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
 * Resolves to the whole body. Its bytes are copied into one buffer as they arrive: for a peer that
 * sends them one by one, a list of pieces would take a hundred times the memory.
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

/**
 * Reads a body that is not needed, so that its connection can be used again; a long or slow body is
 * cut off instead.
 */
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
