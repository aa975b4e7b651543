import { Slots } from "../util/slots.ts";
import type { ActiveRequest } from "./route.ts";

/** Requests are named up to this number, the others counted. */
const MAX_NAMED = 10;

const cutOff = new WeakSet<ActiveRequest>();

const following = new Set<(names: string) => void>();

/** Hears the names of requests that are cut off in this process, until what is returned is called. */
export function followCuts(hear: (names: string) => void): () => void {
  following.add(hear);
  return () => void following.delete(hear);
}

/**
 * Names requests that are to be cut off: `GET /a (3 s), GET /b (1 s) and 2 more`; undefined when there are none but those
 * that were named before, by whoever ends the same request.
 */
export function namesOfCut(requests: Iterable<ActiveRequest>): string | undefined {
  const all = [...requests].filter((request) => !cutOff.has(request)).sort((one, other) => one.began - other.began);
  if (all.length === 0) return undefined;
  for (const request of all) cutOff.add(request);
  const named = all.slice(0, MAX_NAMED).map((request) => request.describe());
  const names = named.join(", ") + (all.length > named.length ? ` and ${all.length - named.length} more` : "");
  for (const hear of following) hear(names);
  return names;
}

/** In no order. */
export interface ActiveRequests extends Iterable<ActiveRequest> {
  readonly size: number;
}

/** Requests that an app or a middleware is working on; its unload waits for them. */
export class InFlight {
  readonly #active = new Slots<ActiveRequest>();
  #idle: (() => void) | undefined;

  /** Those that are still there. */
  get active(): ActiveRequests {
    return this.#active;
  }

  /** Gives the place to leave. */
  enter(request: ActiveRequest): number {
    return this.#active.add(request);
  }

  leave(place: number): void {
    this.#active.delete(place);
    if (this.#active.size === 0) this.#idle?.();
  }

  /** Resolves when the last request has left; those still there after `grace` seconds are told of and cut off. */
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
