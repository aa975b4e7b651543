import { Slots } from "../../util/slots.ts";

/** A request in progress, as its app sees it. */
export interface ActiveRequest {
  /** Notifies the handler that its module is being unloaded. */
  retire(): void;
  /** Ends the request at once, even in the middle of its response. */
  cut(): void;
  /** Describes the request for people: `GET /path (3 s)`. */
  describe(): string;
  /** Start of the request, in milliseconds of `performance.now()`. */
  readonly began: number;
  /**
   * Whether the request ends when its module leaves: a websocket, an event stream, or a handler
   * that uses `request.leaving`.
   */
  readonly endsOnLeave: boolean;
}

/** Maximum number of requests that are named. The others are counted. */
const MAX_NAMED = 10;

const cutOff = new WeakSet<ActiveRequest>();

const following = new Set<(names: string) => void>();

/**
 * Calls back with the names of requests that are cut off in this process. The returned function
 * ends that.
 */
export function followCuts(listener: (names: string) => void): () => void {
  following.add(listener);
  return () => void following.delete(listener);
}

/**
 * Names requests that are about to be cut off: `GET /a (3 s), GET /b (1 s) and 2 more`. Each
 * request is named once, even when several callers cut it; returns undefined when no other request
 * is left.
 */
export function namesOfCut(requests: Iterable<ActiveRequest>): string | undefined {
  const all = [...requests].filter((request) => !cutOff.has(request)).sort((one, other) => one.began - other.began);
  if (all.length === 0) return undefined;
  for (const request of all) cutOff.add(request);
  const named = all.slice(0, MAX_NAMED).map((request) => request.describe());
  const names = named.join(", ") + (all.length > named.length ? ` and ${all.length - named.length} more` : "");
  for (const listener of following) listener(names);
  return names;
}

/** Requests in progress, in no order. */
export interface ActiveRequests extends Iterable<ActiveRequest> {
  readonly size: number;
}

/** Requests that an app or a middleware is serving. Its unload waits for them. */
export class InFlight {
  readonly #active = new Slots<ActiveRequest>();
  #idle: (() => void) | undefined;

  /** The requests in progress. */
  get active(): ActiveRequests {
    return this.#active;
  }

  /** Adds a request. Returns the slot for `leave`. */
  enter(request: ActiveRequest): number {
    return this.#active.add(request);
  }

  leave(slot: number): void {
    this.#active.delete(slot);
    if (this.#active.size === 0) this.#idle?.();
  }

  /**
   * Resolves when the last request has ended. Requests that remain after `grace` seconds are
   * reported to `cutting` and cut off.
   */
  async retire(grace: number, cutting: (names: string) => void = () => undefined): Promise<void> {
    for (const request of [...this.#active]) request.retire();
    if (this.#active.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        const names = namesOfCut(this.#active);
        if (names !== undefined) cutting(names);
        for (const request of [...this.#active]) request.cut();
        resolve();
      }, grace * 1000);
      this.#idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
