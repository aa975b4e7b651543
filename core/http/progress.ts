/** Something that moves bytes while a client is waited for. */
export interface Flow {
  /** Bytes moved so far. */
  moved(): number;
  /** False while the delay is not the client's. */
  waiting(): boolean;
  /** The client was too slow; called once, the flow is forgotten. */
  expired(): void;
}

/**
 * Cuts clients that are too slow, by progress and not by duration: within each `timeout` seconds in which a flow
 * waits for its client, `bytes` must move. One timer serves all flows, and none runs without any.
 */
export class ProgressWatch {
  readonly #timeout: number;
  readonly #bytes: number;
  readonly #flows = new Map<Flow, { since: number; moved: number }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(timeout: number, bytes: number) {
    this.#timeout = timeout * 1000;
    this.#bytes = bytes;
  }

  add(flow: Flow): void {
    this.#flows.set(flow, { since: performance.now(), moved: flow.moved() });
    this.#timer ??= setInterval(() => this.#tick(), Math.max(20, Math.min(1000, this.#timeout / 4))).unref();
  }

  delete(flow: Flow): void {
    this.#flows.delete(flow);
  }

  #tick(): void {
    const now = performance.now();
    for (const [flow, mark] of this.#flows) {
      const moved = flow.moved();
      if (!flow.waiting() || moved - mark.moved >= this.#bytes) {
        mark.since = now;
        mark.moved = moved;
      } else if (now - mark.since >= this.#timeout) {
        this.#flows.delete(flow);
        flow.expired();
      }
    }
    if (this.#flows.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}
