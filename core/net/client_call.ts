/** One call of `request`: an exchange, and as many more as there are redirects to follow. */
import { channel } from "node:diagnostics_channel";
import type { ClientTrace } from "../types.ts";
import { RequestError, type RequestFailure } from "./client_errors.ts";
import { type Answer, collect, discard, Exchange, type Limits } from "./client_exchange.ts";
import type { Pools } from "./client_pools.ts";
import { type Outgoing, type RequestFields, type RequestOptions, redirected } from "./client_request.ts";

/** Tells of requests before they are sent. */
const client = channel("modhost:client");

/** Options of one request with its limits all set. */
export type CallOptions = RequestOptions & Limits;

export interface CallResult extends Omit<Answer, "body"> {
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

  /** `all` holds the call for as long as it, or the body that it gave, is under way. */
  constructor(pools: Pools, outgoing: Outgoing, options: CallOptions, all: Set<Call>) {
    this.#pools = pools;
    this.#outgoing = outgoing;
    this.#options = options;
    this.#all = all;
  }

  /** Ends whatever is under way. */
  fail(code: RequestFailure, details: Record<string, unknown> = {}, cause?: unknown): void {
    this.#failure ??= new RequestError(code, this.#outgoing.url.href, details, cause);
    this.#exchange?.fail(this.#failure);
  }

  /** Sends the request; called once. The body of the result is what `response_type` says. */
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

  async #follow(): Promise<Answer> {
    const { follow = 0 } = this.#options;
    for (let followed = 0; ; followed++) {
      if (this.#failure !== undefined) throw this.#failure;
      if (client.hasSubscribers) this.#outgoing = told(this.#outgoing);
      this.#exchange = new Exchange(this.#pools.of(this.#options), this.#outgoing, this.#options);
      const answer = await this.#exchange.answer;
      const next = follow > 0 ? redirected(this.#outgoing, answer.code, answer.headers.location) : undefined;
      if (next === undefined) return answer;
      if (followed >= follow) throw new RequestError("too-many-redirects", this.#outgoing.url.href, { limit: follow });
      await discard(answer.body);
      if (next.url.origin !== this.#outgoing.url.origin) this.#options = withoutIdentity(this.#options);
      this.#outgoing = next;
    }
  }

  readonly #aborted = () => {
    const reason: unknown = this.#options.signal?.reason;
    const isTimeout = reason instanceof Error && reason.name === "TimeoutError";
    this.fail(isTimeout ? "timeout" : "cancelled", { awaited: "complete answer", bound: "signal" }, reason);
  };
}

/** Neither the client's certificate nor the name that was meant for one server is for another. */
function withoutIdentity({ cert: _cert, key: _key, servername: _name, ...options }: CallOptions): CallOptions {
  return options;
}

/** The request with the headers that whoever listens has added. */
function told(outgoing: Outgoing): Outgoing {
  const { method, url, fields } = outgoing;
  const trace: ClientTrace = { method, url, headers: { ...fields } };
  client.publish(trace);
  return { ...outgoing, fields: trace.headers };
}
