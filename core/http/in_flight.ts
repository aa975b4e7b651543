import type { ActiveRequest } from "./route.ts";

/** Requests that an app or a middleware is working on; its unload waits for them. */
export class InFlight {
  readonly #active = new Set<ActiveRequest>();
  #idle: (() => void) | undefined;

  /** Those that are still there. */
  get active(): ReadonlySet<ActiveRequest> {
    return this.#active;
  }

  enter(request: ActiveRequest): void {
    this.#active.add(request);
  }

  leave(request: ActiveRequest): void {
    this.#active.delete(request);
    if (this.#active.size === 0) this.#idle?.();
  }

  /** Resolves when the last request has left; those still there after `grace` seconds are cut off. */
  async retire(grace: number): Promise<void> {
    for (const request of [...this.#active]) request.retire();
    if (this.#active.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
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
