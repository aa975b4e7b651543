/** The messages of a topic for one reader. */
import { Queue } from "../../util/async/queue.ts";
import type { PubsubMessage } from "./pubsub.ts";

/** Bytes and messages that may wait for a reader; beyond it those that have waited longest are dropped. */
const most = { bytes: 16 * 1024 * 1024, messages: 16 * 1024 };

export class Subscription implements AsyncIterableIterator<PubsubMessage, void, undefined> {
  readonly #waiting = new Queue<PubsubMessage>();
  readonly #reading = this.#waiting[Symbol.asyncIterator]();
  /** Called once. */
  readonly #left: () => void;
  #bytes = 0;
  #isOpen = true;

  constructor(left: () => void) {
    this.#left = left;
  }

  /** How many were dropped to make room. */
  put(message: PubsubMessage): number {
    let dropped = 0;
    this.#waiting.push(message);
    this.#bytes += message.data.length;
    while (this.#bytes > most.bytes || this.#waiting.length > most.messages) {
      this.#bytes -= this.#waiting.dropOldest()?.data.length ?? 0;
      dropped += 1;
    }
    return dropped;
  }

  /** The reader gets what waits, then the end, or `reason`. */
  end(reason?: unknown): void {
    this.#leave();
    if (reason === undefined) this.#waiting.end();
    else this.#waiting.fail(reason);
  }

  #leave(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#left();
  }

  async next(): Promise<IteratorResult<PubsubMessage, void>> {
    const result = await this.#reading.next();
    if (result.done !== true) this.#bytes -= result.value.data.length;
    return result;
  }

  /** Nobody reads any more. */
  async return(): Promise<IteratorResult<PubsubMessage, void>> {
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
