/** Sends requests to an HTTP router, and limits their number and duration. */

import { unescape as unescaped } from "node:querystring";
import { agentVersion } from "../../../util/agent_version.ts";
import { raceSignal } from "../../../util/async/abortable.ts";
import { WeightedSemaphore } from "../../../util/async/weighted_semaphore.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { fetchErrorText } from "../../../util/fetch_error.ts";
import { formatDuration } from "../../../util/go/duration.ts";
import { quote } from "../../../util/go/text.ts";
import type { NodeLog } from "../../../util/log.ts";
import { retryAfterMs } from "../../../util/retry_after.ts";

/** Sends requests; tests may replace it. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface EndpointDeps {
  readonly log: NodeLog;
  readonly fetch?: Fetch;
}

/** Kinds of resources below `/routing/v1/`. */
export type Resource = "providers" | "peers" | "ipns";

export interface RouterUrl {
  /** URL without user and password, without `/routing/v1`, and without a final slash. */
  readonly base: string;
  /** The resource at the end of the URL; undefined means all resources. */
  readonly resource: Resource | undefined;
  /** Value of the authorization header, from the user and password of the URL. */
  readonly authorization: string | undefined;
}

interface EndpointRequest {
  readonly method?: "GET" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
}

/** Milliseconds from a request to the end of its response. */
const MAX_RESPONSE_MS = 30_000;
/** Maximum number of concurrent requests to a router; further ones wait. */
const MAX_AT_A_TIME = 32;
/**
 * Milliseconds for which a router gets no requests after it asked for that without a duration, and
 * the maximum that it can ask for.
 */
const PAUSE_MS = 5000;
const MAX_PAUSE_MS = 60_000;
/**
 * Status codes with which a router asks for a pause: too many requests, and service unavailable.
 */
const PAUSE_STATUSES: readonly number[] = [429, 503];

/**
 * Parses `https://HOST`, with an optional `/routing/v1` and one of its resources. @throws NodeError
 * for anything else
 */
export function parseRouterUrl(text: string): RouterUrl {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search + url.hash !== "") {
    const shown = quote(text.replace(/\/\/[^/@]*@/, "//"));
    throw failure("CONFIG_INVALID", {
      reason: `a router must be a URL such as https://HOST or https://HOST/routing/v1/providers, not ${shown}`,
    });
  }
  const { username, password, origin, pathname } = url;
  const [, path = "", resource] = /^(.*?)(?:\/routing\/v1(?:\/(providers|peers|ipns))?)?\/*$/.exec(pathname) ?? [];
  const credentials = `${unescaped(username)}:${unescaped(password)}`;
  return {
    base: origin + path,
    resource: resource as Resource | undefined,
    authorization: credentials === ":" ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`,
  };
}

export class Endpoint {
  /** Name of the router in error texts. */
  readonly name: string;
  readonly #authorization: string | undefined;
  readonly #fetch: Fetch;
  readonly #log: NodeLog;
  readonly #slots = new WeightedSemaphore(MAX_AT_A_TIME);
  /** End of the requested pause, by `performance.now`. */
  #pausedUntil = 0;
  #isFailing = false;

  constructor({ base, authorization }: RouterUrl, { log, fetch = globalThis.fetch }: EndpointDeps) {
    this.name = base;
    this.#authorization = authorization;
    this.#fetch = fetch;
    this.#log = log;
  }

  /**
   * Yields what `read` returns for the response; nothing if the router responds with 404.
   *
   * @throws NodeError that names the router, or the reason of the signal
   */
  async *query<T>(
    path: string,
    { signal, ...request }: EndpointRequest,
    read: (response: Response) => AsyncIterable<T> | Promise<Iterable<T>>,
  ): AsyncGenerator<T, void, undefined> {
    const limit = AbortSignal.timeout(MAX_RESPONSE_MS);
    const either = AbortSignal.any([signal, limit]);
    let isEntered = false;
    try {
      await this.#enter(either);
      isEntered = true;
      const response = await this.#fetchResponse(path, { ...request, signal: either });
      for await (const found of response === undefined ? [] : await read(response)) {
        this.#noteState(undefined);
        yield found;
      }
      this.#noteState(undefined);
    } catch (error) {
      signal.throwIfAborted();
      const reason = limit.aborted ? `no response within ${formatDuration(MAX_RESPONSE_MS)}` : reasonOf(error as Error);
      this.#noteState(reason);
      throw failure("ROUTER_FAILED", { reason: `router ${this.name}: ${reason}` }, error);
    } finally {
      if (isEntered) this.#slots.release(1);
    }
  }

  /** Resolves when the number of open requests is below the limit. */
  async #enter(signal: AbortSignal): Promise<void> {
    const entry = this.#slots.acquire(1);
    if (entry === undefined) return;
    await raceSignal(entry, signal).catch((reason: unknown) => {
      void entry.then(() => this.#slots.release(1));
      throw reason;
    });
  }

  async #fetchResponse(
    path: string,
    { method = "GET", headers, ...request }: EndpointRequest,
  ): Promise<Response | undefined> {
    const left = this.#pausedUntil - performance.now();
    if (left > 0)
      throw failure("ROUTER_FAILED", {
        reason: `it has requested a pause, which lasts for another ${formatDuration(Math.ceil(left))}`,
      });
    const response = await this.#fetch(`${this.name}/routing/v1/${path}`, {
      method,
      headers: {
        ...headers,
        "user-agent": agentVersion,
        ...(this.#authorization === undefined ? {} : { authorization: this.#authorization }),
      },
      // A redirect could lead to a service on this machine.
      redirect: "error",
      ...request,
    });
    if (response.ok) return response;
    await response.body?.cancel();
    if (response.status === 404 && method === "GET") return undefined;
    if (PAUSE_STATUSES.includes(response.status)) this.#pausedUntil = performance.now() + pauseOf(response);
    throw failure("ROUTER_FAILED", { reason: `status ${response.status}` });
  }

  /** Logs when the router starts to fail, and when it works again. */
  #noteState(failure: string | undefined): void {
    if ((failure !== undefined) === this.#isFailing) return;
    this.#isFailing = failure !== undefined;
    if (failure === undefined) this.#log.write("core", "info", `router ${this.name} responds again`);
    else this.#log.write("core", "warn", `router ${this.name}: ${failure}`);
  }
}

const reasonOf = (error: Error): string => (error instanceof NodeError ? error.message : fetchErrorText(error));

/** Returns the length of the requested pause in milliseconds. */
const pauseOf = ({ headers }: Response): number =>
  Math.min(retryAfterMs(headers.get("retry-after")) ?? PAUSE_MS, MAX_PAUSE_MS);
