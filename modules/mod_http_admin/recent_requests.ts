/**
 * Stores the latest finished requests for callers that ask for them, and notifies listeners of each
 * as it finishes.
 */
import type { HttpFinishedEvent, Module } from "../../core/types.ts";
import type { FinishedRequest } from "./types.ts";

const MAX_REQUESTS = 1000;
/**
 * On a busy server, this many failed requests and this many others are stored per second. Nobody
 * could read more.
 */
const MAX_A_SECOND = 100;
/** Maximum length of a stored path in characters. */
const MAX_PATH = 1024;

/** A filter. A request must match every field that is set. */
export interface RequestFilter {
  readonly app?: string | undefined;
  readonly module?: string | undefined;
  /** A class such as "4xx", or a single status. */
  readonly status?: string | undefined;
  readonly method?: string | undefined;
  /** A part of the path. */
  readonly path?: string | undefined;
}

/** Created for every request, so that whatever can be computed later is left out. */
interface StoredRequest extends Omit<FinishedRequest, "time"> {
  /** Milliseconds since 1970. */
  readonly ended: number;
}

export class RecentRequests {
  readonly #ring: StoredRequest[] = [];
  readonly #listeners = new Set<(request: FinishedRequest) => void>();
  readonly #failed = new PerSecond(MAX_A_SECOND);
  readonly #others = new PerSecond(MAX_A_SECOND);
  #next = 0;

  constructor({ server }: Module) {
    server.follow("http-finished", (event) => {
      const isStored = (event.status >= 500 ? this.#failed : this.#others).take();
      if (isStored || this.#listeners.size > 0) this.#add(storedOf(event));
    });
  }

  /** Calls the listener with each finished request, until the returned function is called. */
  follow(listener: (request: FinishedRequest) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Returns the requests for the next instance of this module. */
  save(): readonly StoredRequest[] {
    return this.#inOrder();
  }

  restore(saved: readonly StoredRequest[] = []): void {
    for (const request of saved) this.#add(request);
  }

  /** Returns the matching requests, the oldest first. */
  find(filter: RequestFilter): FinishedRequest[] {
    return this.#inOrder()
      .filter((request) => fits(request, filter))
      .map(shown);
  }

  #inOrder(): StoredRequest[] {
    if (this.#ring.length < MAX_REQUESTS) return [...this.#ring];
    return [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)];
  }

  #add(request: StoredRequest): void {
    this.#ring[this.#next] = request;
    this.#next = (this.#next + 1) % MAX_REQUESTS;
    if (this.#listeners.size === 0) return;
    const finished = shown(request);
    for (const listener of this.#listeners) listener(finished);
  }
}

/**
 * Allows a number of events per second, the first ones of each. A timer runs while there are any,
 * which is cheaper than reading the clock for each.
 */
export class PerSecond {
  readonly #most: number;
  readonly #inSecond: (renew: () => void) => void;
  #taken = 0;

  /** `inSecond` calls its argument one second later. */
  constructor(most: number, inSecond: (renew: () => void) => void = (renew) => void setTimeout(renew, 1000).unref()) {
    this.#most = most;
    this.#inSecond = inSecond;
  }

  take(): boolean {
    this.#taken += 1;
    if (this.#taken === 1) this.#inSecond(() => (this.#taken = 0));
    return this.#taken <= this.#most;
  }
}

function fits(request: StoredRequest, { app, module, status, method, path }: RequestFilter): boolean {
  if (app !== undefined && request.app !== app) return false;
  if (module !== undefined && request.module !== module) return false;
  if (method !== undefined && request.method !== method.toUpperCase()) return false;
  if (path !== undefined && !request.path.includes(path)) return false;
  if (status === undefined) return true;
  return status === String(request.status) || status === `${Math.floor(request.status / 100)}xx`;
}

/** Query strings can contain secrets, so they are left out. */
function storedOf(event: HttpFinishedEvent): StoredRequest {
  const { id, method, url, ip, host } = event.request;
  const { app, module, route, status, bytes, duration, complete } = event;
  const { raw_path: path, query = "" } = url;
  // A slice of a string keeps the whole string in memory, so a slice of a long one is copied.
  const short = path.length + query.length > MAX_PATH ? Buffer.from(path.slice(0, MAX_PATH)).toString() : path;
  return {
    id,
    ended: Date.now(),
    method,
    path: short,
    host,
    ip,
    app,
    module,
    route,
    status,
    bytes,
    duration,
    complete,
  };
}

function shown({ ended, duration, ...request }: StoredRequest): FinishedRequest {
  return { ...request, duration: Math.round(duration * 10) / 10, time: new Date(ended).toISOString() };
}
