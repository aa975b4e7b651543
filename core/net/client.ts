/**
 * The HTTP client of `net.http` (contract, part 1): sends requests over pooled connections, with
 * limits on time and memory.
 */

import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { reasonOf } from "../util/errors.ts";
import { packageVersion } from "../util/package.ts";
import { Call } from "./client_call.ts";
import { RequestError, type RequestFailure, shownUrl } from "./client_errors.ts";
import type { Limits } from "./client_exchange.ts";
import { milliseconds, Pools } from "./client_pools.ts";
import {
  type ClientOptions,
  mergeFields,
  optionProblem,
  outgoingOf,
  parseUrl,
  type RequestFields,
  type RequestOptions,
  type ResponseType,
} from "./client_request.ts";

export { RequestError, type RequestFailure, requestFailures } from "./client_errors.ts";
export type {
  ClientOptions,
  ConnectionOptions,
  RequestBody,
  RequestFields,
  RequestOptions,
  ResponseType,
} from "./client_request.ts";

interface BodyOf {
  readonly text: string;
  readonly bytes: Buffer;
  readonly stream: Readable;
}

/** The request to which the response belongs: after redirects, the last one. */
export interface SentRequest {
  readonly method: string;
  /** Without user name, password and fragment. */
  readonly url: string;
  /** Lower-case names with dashes. */
  readonly headers: RequestFields;
}

/** A response with any status. */
export interface ClientResponse<T extends ResponseType = "text"> {
  readonly code: number;
  readonly body: BodyOf[T];
  /** Lower-case names with dashes. Repeated fields are joined with ", "; `set-cookie` is a list. */
  readonly headers: IncomingHttpHeaders;
  readonly request: SentRequest;
  /** "1.1", or "2" if both the client and the server use HTTP/2. */
  readonly http_version: string;
}

/**
 * Called with body, code, response and request; after a failure with its code, 0 and the
 * RequestError.
 */
export type RequestCallback<T extends ResponseType = "text"> = (
  body: BodyOf[T] | RequestFailure,
  code: number,
  response: ClientResponse<T> | RequestError,
  request: SentRequest | undefined,
) => unknown;

/** The promise of a response. With a callback, a rejection needs no handler. */
export interface PendingResponse<T extends ResponseType = "text"> extends Promise<ClientResponse<T>> {
  /** Cancels the request, or the body that is still arriving, with "cancelled". */
  cancel(): void;
}

export interface Client extends AsyncDisposable {
  request<T extends ResponseType = "text">(
    url: string | URL,
    options?: RequestOptions<T>,
    callback?: RequestCallback<T>,
  ): PendingResponse<T>;
  /** Fails open requests with "client-closed"; resolves when all connections are closed. */
  close(): Promise<void>;
}

const limits: Limits = {
  timeout: 60,
  body_timeout: 60,
  connect_timeout: 10,
  max_header: 16 * 1024,
  max_body: 64 * 1024 * 1024,
};

/** The value of User-Agent. */
const agentName = lazily(() => `modhost/${packageVersion()}`);

function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/**
 * Creates a client with its own connections and defaults. @throws a TypeError for an invalid option
 */
export function new_client(options: ClientOptions = {}): Client {
  return new PoolingClient(options);
}

class PoolingClient implements Client {
  readonly #defaults: RequestOptions;
  readonly #pools: Pools;
  readonly #calls = new Set<Call>();
  #closed = false;

  constructor(options: ClientOptions) {
    const problem = optionProblem(options, "client");
    if (problem !== undefined) throw new TypeError(`Cannot create the client: ${problem}`);
    const { connections = 64, keep_alive = 4, http2 = false, ...defaults } = isSet(options);
    this.#defaults = defaults;
    this.#pools = new Pools({ connections, keepAliveTimeout: milliseconds(keep_alive), allowH2: http2 });
  }

  request<T extends ResponseType = "text">(
    url: string | URL,
    options?: RequestOptions<T>,
    callback?: RequestCallback<T>,
  ): PendingResponse<T> {
    const call = this.#start(url, options ?? {});
    if (call instanceof RequestError) return pending<T>(Promise.reject(call), () => {}, callback, call);
    return pending<T>(call.run() as Promise<ClientResponse<T>>, () => call.fail("cancelled"), callback);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const call of this.#calls) call.fail("client-closed");
    await this.#pools.destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #start(url: string | URL, given: RequestOptions): Call | RequestError {
    try {
      const target = parseUrl(url);
      if (this.#closed) throw new RequestError("client-closed", shownUrl(target));
      const reason = optionProblem(given);
      if (reason !== undefined) throw new RequestError("invalid-request", shownUrl(target), { reason });
      const unlimited = given.response_type === "stream" ? { max_body: Number.POSITIVE_INFINITY } : {};
      const options = { ...limits, ...unlimited, ...this.#defaults, ...isSet(given) };
      const outgoing = outgoingOf(target, options, mergeFields({ user_agent: agentName() }, this.#defaults.headers));
      return new Call(this.#pools, outgoing, options, this.#calls);
    } catch (error) {
      if (error instanceof RequestError) return error;
      throw error;
    }
  }
}

function isSet<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}

/**
 * Passes the result of a request to its callback as well. The callback gets a failure that is known
 * already (`early`) before this function returns. Errors that it throws become warnings.
 */
function pending<T extends ResponseType>(
  promise: Promise<ClientResponse<T>>,
  cancel: () => void,
  callback?: RequestCallback<T>,
  early?: RequestError,
): PendingResponse<T> {
  if (callback !== undefined) {
    const call = (...result: Parameters<RequestCallback<T>>) => void Promise.try(() => callback(...result)).catch(warn);
    const failed = (error: RequestError) => call(error.code, 0, error, undefined);
    if (early !== undefined) failed(early);
    promise.then(
      (response) => call(response.body, response.code, response, response.request),
      (error: RequestError) => (early === undefined ? failed(error) : undefined),
    );
  }
  return Object.assign(promise, { cancel });
}

function warn(error: unknown): void {
  const detail = error instanceof Error && error.stack !== undefined ? { detail: error.stack } : {};
  process.emitWarning(`The callback of a request failed: ${reasonOf(error)}`, { type: "ModhostWarning", ...detail });
}

const shared = new_client();

/**
 * Sends a request over connections that all modules share; resolves to the response, whatever its
 * status. A callback is called as well; for an invalid URL before this returns. Rejects with a
 * RequestError.
 */
export const request: Client["request"] = (url, options, callback) => shared.request(url, options, callback);
