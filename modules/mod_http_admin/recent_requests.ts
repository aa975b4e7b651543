/** The latest requests that are over, for those who ask, and each as it ends, for those who listen. */
import type { HttpFinishedEvent, Module } from "../../core/types.ts";
import type { FinishedRequest } from "./types.ts";

const MAX_REQUESTS = 1000;
/** Of a busier server that many of those that failed are kept, and that many of the others: nobody could read more. */
const MAX_A_SECOND = 100;
/** Characters of a path. */
const MAX_PATH = 1024;

/** What is looked for; all of it must fit. */
export interface RequestFilter {
  readonly app?: string | undefined;
  readonly module?: string | undefined;
  /** A class such as "4xx", or a status. */
  readonly status?: string | undefined;
  readonly method?: string | undefined;
  /** A part of the path. */
  readonly path?: string | undefined;
}

/** Made for each request: what can be made later is. */
interface Kept extends Omit<FinishedRequest, "time"> {
  /** Milliseconds since 1970. */
  readonly ended: number;
}

export class RecentRequests {
  readonly #ring: Kept[] = [];
  readonly #hearing = new Set<(request: FinishedRequest) => void>();
  readonly #failed = new PerSecond(MAX_A_SECOND);
  readonly #others = new PerSecond(MAX_A_SECOND);
  #next = 0;

  constructor({ server }: Module) {
    server.follow("http-finished", (event) => {
      const isKept = (event.status >= 500 ? this.#failed : this.#others).take();
      if (isKept || this.#hearing.size > 0) this.#add(keptOf(event));
    });
  }

  /** Hears each request that is over, until what this gives is called. */
  follow(hear: (request: FinishedRequest) => void): () => void {
    this.#hearing.add(hear);
    return () => void this.#hearing.delete(hear);
  }

  /** For the next instance of this module. */
  save(): readonly Kept[] {
    return this.#inOrder();
  }

  restore(saved: readonly Kept[] = []): void {
    for (const request of saved) this.#add(request);
  }

  /** Those that fit, the oldest first. */
  find(filter: RequestFilter): FinishedRequest[] {
    return this.#inOrder()
      .filter((request) => fits(request, filter))
      .map(shown);
  }

  #inOrder(): Kept[] {
    if (this.#ring.length < MAX_REQUESTS) return [...this.#ring];
    return [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)];
  }

  #add(request: Kept): void {
    this.#ring[this.#next] = request;
    this.#next = (this.#next + 1) % MAX_REQUESTS;
    if (this.#hearing.size === 0) return;
    const told = shown(request);
    for (const hear of this.#hearing) hear(told);
  }
}

/** So many in each second, the first ones. The clock is not looked at for each: a timer runs while there are any. */
export class PerSecond {
  readonly #most: number;
  readonly #inSecond: (renew: () => void) => void;
  #taken = 0;

  /** `inSecond` calls what it is given a second later. */
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

function fits(request: Kept, { app, module, status, method, path }: RequestFilter): boolean {
  if (app !== undefined && request.app !== app) return false;
  if (module !== undefined && request.module !== module) return false;
  if (method !== undefined && request.method !== method.toUpperCase()) return false;
  if (path !== undefined && !request.path.includes(path)) return false;
  if (status === undefined) return true;
  return status === String(request.status) || status === `${Math.floor(request.status / 100)}xx`;
}

/** Query strings carry secrets: they are left out. */
function keptOf(event: HttpFinishedEvent): Kept {
  const { id, method, url, ip, host } = event.request;
  const { app, module, route, status, bytes, duration, complete } = event;
  const { raw_path: path, query = "" } = url;
  // A part of a string keeps the whole of it in memory: of a long one there is a copy.
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

function shown({ ended, duration, ...request }: Kept): FinishedRequest {
  return { ...request, duration: Math.round(duration * 10) / 10, time: new Date(ended).toISOString() };
}
