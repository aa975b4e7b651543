import type { ServerResponse } from "node:http";
import type { NodeResponse } from "../../util/node_messages.ts";

/** Milliseconds that the head of a streamed response waits for the first piece. */
export const HEAD_DELAY_MS = 1000;
/** The same delay for event streams, which browsers report as open when the head arrives. */
export const EVENT_HEAD_DELAY_MS = 100;

interface HeadTarget {
  readonly raw: NodeResponse;
  /** The response has ended, or its client has left. */
  isOver(): boolean;
  /** Writes the head; it goes out with the first piece. */
  write(): void;
  /** The delay is over, and the body still has nothing to send. */
  silent(): void;
  failed(error: unknown): void;
}

/**
 * The head of a streamed response. It waits for the first piece: a body that fails before that
 * becomes an error page.
 */
export class LateHead {
  readonly #target: HeadTarget;
  readonly #timer: NodeJS.Timeout;
  #hasBegun = false;
  #isReplaced = false;

  constructor(target: HeadTarget, delay: number) {
    this.#target = target;
    this.#timer = setTimeout(() => {
      this.flush();
      this.#target.silent();
    }, delay);
  }

  /**
   * Writes the head, once. Returns false when the response is over or was replaced, so that the
   * body is dropped.
   */
  begin(): boolean {
    if (this.#isReplaced || this.#target.isOver()) return false;
    if (this.#hasBegun) return true;
    this.#hasBegun = true;
    clearTimeout(this.#timer);
    this.#target.write();
    return true;
  }

  /** Sends the head at once. */
  flush(): void {
    try {
      if (this.begin()) (this.#target.raw as ServerResponse).flushHeaders();
    } catch (error) {
      this.#target.failed(error);
    }
  }

  /** The body has ended before its first piece, or another response goes out instead. */
  drop(): void {
    clearTimeout(this.#timer);
    this.#isReplaced = true;
  }
}
