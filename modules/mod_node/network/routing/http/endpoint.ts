/** A router over HTTP: where it is, and requests to it, with bounds on how many and how long. */

import { unescape as unescaped } from "node:querystring";
import { agentVersion } from "../../../util/agent_version.ts";
import { raceSignal } from "../../../util/async/abortable.ts";
import { WeightedSemaphore } from "../../../util/async/weighted_semaphore.ts";
import { NodeError } from "../../../util/errors.ts";
import { fetchErrorText } from "../../../util/fetch_error.ts";
import { formatDuration } from "../../../util/go/duration.ts";
import { quote } from "../../../util/go/text.ts";
import type { NodeLog } from "../../../util/log.ts";
import { retryAfterMs } from "../../../util/retry_after.ts";

/** How requests are made; a test may give another. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface EndpointDeps {
  readonly log: NodeLog;
  readonly fetch?: Fetch;
}

/** What a router is asked: below `/routing/v1/`. */
export type Resource = "providers" | "peers" | "ipns";

export interface RouterUrl {
  /** Without user and password, without `/routing/v1`, and without a slash at its end. */
  readonly base: string;
  /** The one that the URL ends in; undefined: all of them. */
  readonly resource: Resource | undefined;
  /** Value of the header, from the user and password of the URL. */
  readonly authorization: string | undefined;
}

interface Question {
  readonly method?: "GET" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
}

/** Milliseconds from a question to the end of its answer. */
const MAX_ANSWER_MS = 30_000;
/** Questions that a router is asked at a time; others wait. */
const MAX_AT_A_TIME = 32;
/** Milliseconds for which a router is left alone that wants it and does not say how long, and the most that it can want. */
const REST_MS = 5000;
const MAX_REST_MS = 60_000;
/** Too many requests; not available for now. */
const WANTS_REST: readonly number[] = [429, 503];

/** `https://HOST`, with `/routing/v1` and one of its resources behind it or not. @throws NodeError for anything else */
export function parseRouterUrl(text: string): RouterUrl {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search + url.hash !== "") {
    const shown = quote(text.replace(/\/\/[^/@]*@/, "//"));
    throw new NodeError(
      `a router is an URL such as https://HOST or https://HOST/routing/v1/providers, and not ${shown}`,
    );
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
  /** As failures show it. */
  readonly name: string;
  readonly #authorization: string | undefined;
  readonly #fetch: Fetch;
  readonly #log: NodeLog;
  readonly #slots = new WeightedSemaphore(MAX_AT_A_TIME);
  /** By `performance.now`. */
  #restsUntil = 0;
  #isFailing = false;

  constructor({ base, authorization }: RouterUrl, { log, fetch = globalThis.fetch }: EndpointDeps) {
    this.name = base;
    this.#authorization = authorization;
    this.#fetch = fetch;
    this.#log = log;
  }

  /**
   * What `read` makes of the answer; undefined where the router has nothing (404).
   *
   * @throws NodeError that names the router, or the reason of the signal
   */
  async *ask<T>(
    path: string,
    { signal, ...question }: Question,
    read: (answer: Response) => AsyncIterable<T> | Promise<Iterable<T>>,
  ): AsyncGenerator<T, void, undefined> {
    const limit = AbortSignal.timeout(MAX_ANSWER_MS);
    const either = AbortSignal.any([signal, limit]);
    let isHeld = false;
    try {
      await this.#enter(either);
      isHeld = true;
      const answer = await this.#answer(path, { ...question, signal: either });
      for await (const found of answer === undefined ? [] : await read(answer)) {
        this.#turn(undefined);
        yield found;
      }
      this.#turn(undefined);
    } catch (error) {
      signal.throwIfAborted();
      const reason = limit.aborted ? `no answer within ${formatDuration(MAX_ANSWER_MS)}` : reasonOf(error as Error);
      this.#turn(reason);
      throw new NodeError(`router ${this.name}: ${reason}`, { cause: error });
    } finally {
      if (isHeld) this.#slots.release(1);
    }
  }

  /** Resolves when fewer questions than may be are open. */
  async #enter(signal: AbortSignal): Promise<void> {
    const entry = this.#slots.acquire(1);
    if (entry === undefined) return;
    await raceSignal(entry, signal).catch((reason: unknown) => {
      void entry.then(() => this.#slots.release(1));
      throw reason;
    });
  }

  async #answer(path: string, { method = "GET", headers, ...question }: Question): Promise<Response | undefined> {
    const left = this.#restsUntil - performance.now();
    if (left > 0) throw new NodeError(`it asked to be left alone for another ${formatDuration(Math.ceil(left))}`);
    const answer = await this.#fetch(`${this.name}/routing/v1/${path}`, {
      method,
      headers: {
        ...headers,
        "user-agent": agentVersion,
        ...(this.#authorization === undefined ? {} : { authorization: this.#authorization }),
      },
      // Where a router sends on to may be a service of this machine.
      redirect: "error",
      ...question,
    });
    if (answer.ok) return answer;
    await answer.body?.cancel();
    if (answer.status === 404 && method === "GET") return undefined;
    if (WANTS_REST.includes(answer.status)) this.#restsUntil = performance.now() + restOf(answer);
    throw new NodeError(`status ${answer.status}`);
  }

  /** Logs where it begins to fail, and where it is back. */
  #turn(failure: string | undefined): void {
    if ((failure !== undefined) === this.#isFailing) return;
    this.#isFailing = failure !== undefined;
    if (failure === undefined) this.#log.write("core", "info", `router ${this.name} answers again`);
    else this.#log.write("core", "warn", `router ${this.name}: ${failure}`);
  }
}

const reasonOf = (error: Error): string => (error instanceof NodeError ? error.message : fetchErrorText(error));

/** Milliseconds. */
const restOf = ({ headers }: Response): number =>
  Math.min(retryAfterMs(headers.get("retry-after")) ?? REST_MS, MAX_REST_MS);
