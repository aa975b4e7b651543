/** One call of `request`: one exchange, and another one for each redirect. */
import { channel } from "node:diagnostics_channel";
import type { ClientTrace } from "../types.ts";
import { RequestError, type RequestFailure } from "./client_errors.ts";
import { collect, discard, Exchange, type ExchangeResponse, type Limits } from "./client_exchange.ts";
import type { Pools } from "./client_pools.ts";
import { type Outgoing, type RequestFields, type RequestOptions, redirected } from "./client_request.ts";

/** Publishes requests before they are sent. */
const client = channel("modhost:client");

/** The options of one request, with all limits set. */
export type CallOptions = RequestOptions & Limits;

export interface CallResult extends Omit<ExchangeResponse, "body"> {
  readonly body: unknown;
  readonly request: { readonly method: string; readonly url: string; readonly headers: RequestFields };
}

export class Call {
  readonly #pools: Pools;
  readonly #all: Set<Call>;
  #options: CallOptions;
  #outgoing: Outgoing;
  #exchange: Exchange | undefined;
  #failure: RequestError | undefined;

  /** `all` contains the call as long as it, or the body that it returned, is in progress. */
  constructor(pools: Pools, outgoing: Outgoing, options: CallOptions, all: Set<Call>) {
    this.#pools = pools;
    this.#outgoing = outgoing;
    this.#options = options;
    this.#all = all;
  }

  /** Aborts the call. */
  fail(code: RequestFailure, details: Record<string, unknown> = {}, cause?: unknown): void {
    this.#failure ??= new RequestError(code, this.#outgoing.url.href, details, cause);
    this.#exchange?.fail(this.#failure);
  }

  /** Sends the request; called once. `response_type` determines the type of the result's body. */
  async run(): Promise<CallResult> {
    const { signal, response_type = "text" } = this.#options;
    this.#all.add(this);
    signal?.addEventListener("abort", this.#aborted);
    if (signal?.aborted) this.#aborted();
    try {
      const { body, ...head } = await this.#follow();
      const { url, method, fields } = this.#outgoing;
      const result = { ...head, request: { method, url: url.href, headers: fields } };
      if (response_type === "stream") return { ...result, body };
      const bytes = await collect(body);
      return { ...result, body: response_type === "bytes" ? bytes : bytes.toString() };
    } catch (error) {
      if (error instanceof RequestError) this.#exchange?.fail(error);
      throw error;
    } finally {
      void Promise.resolve(this.#exchange?.over).then(() => {
        this.#all.delete(this);
        signal?.removeEventListener("abort", this.#aborted);
      });
    }
  }

  async #follow(): Promise<ExchangeResponse> {
    const { follow = 0 } = this.#options;
    for (let followed = 0; ; followed++) {
      if (this.#failure !== undefined) throw this.#failure;
      if (client.hasSubscribers) this.#outgoing = published(this.#outgoing);
      const response = await this.#send().catch((error: RequestError) => {
        if (error.code !== "connection-closed" || this.#failure !== undefined || !isSafe(this.#outgoing)) throw error;
        // The server may have closed an idle connection while the request was being sent.
        return this.#send();
      });
      const next = follow > 0 ? redirected(this.#outgoing, response.code, response.headers.location) : undefined;
      if (next === undefined) return response;
      if (followed >= follow) throw new RequestError("too-many-redirects", this.#outgoing.url.href, { limit: follow });
      await discard(response.body);
      if (next.url.origin !== this.#outgoing.url.origin) this.#options = withoutIdentity(this.#options);
      this.#outgoing = next;
    }
  }

  #send(): Promise<ExchangeResponse> {
    this.#exchange = new Exchange(this.#pools.of(this.#options), this.#outgoing, this.#options);
    return this.#exchange.response;
  }

  readonly #aborted = () => {
    const reason: unknown = this.#options.signal?.reason;
    const isTimeout = reason instanceof Error && reason.name === "TimeoutError";
    this.fail(isTimeout ? "timeout" : "cancelled", { awaited: "complete response", bound: "signal" }, reason);
  };
}

/** Returns true if the request can be repeated without side effects (RFC 9110, 9.2.1). */
function isSafe({ method, body }: Outgoing): boolean {
  return body === undefined && (method === "GET" || method === "HEAD" || method === "OPTIONS");
}

/** Removes the client's certificate and the server name, which were meant for another server. */
function withoutIdentity({ cert: _cert, key: _key, servername: _name, ...options }: CallOptions): CallOptions {
  return options;
}

/** Returns the request with the headers that subscribers have added. */
function published(outgoing: Outgoing): Outgoing {
  const { method, url, fields } = outgoing;
  const trace: ClientTrace = { method, url, headers: { ...fields } };
  client.publish(trace);
  return { ...outgoing, fields: trace.headers };
}
