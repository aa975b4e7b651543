/** Queues the messages of a topic for one reader. */
import type { PeerId } from "../../formats/peer_id.ts";
import { Queue } from "../../util/async/queue.ts";

export interface PubsubMessage {
  readonly topic: string;
  readonly data: Uint8Array;
  /**
   * The author; undefined for an unsigned message that names none. Without signatures, a sender can
   * name any author.
   */
  readonly from: PeerId | undefined;
  /**
   * The author's number of the message, eight bytes; undefined for an unsigned message that names
   * no author.
   */
  readonly sequence: Uint8Array | undefined;
}

/** Maximum size of the queue; above it, the oldest messages are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const MAX_WAITING_MESSAGES = 16 * 1024;

export class Subscription implements AsyncIterableIterator<PubsubMessage, void, undefined> {
  readonly #waiting = new Queue<PubsubMessage>();
  readonly #iterator = this.#waiting[Symbol.asyncIterator]();
  readonly #onEnd: () => void;
  #bytes = 0;
  #isOpen = true;

  /** @param onEnd called once, when no more messages are accepted */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  /** Adds a message, and returns the number of messages that were dropped to make room. */
  put(message: PubsubMessage): number {
    let dropped = 0;
    this.#waiting.push(message);
    this.#bytes += message.data.length;
    while (this.#bytes > MAX_WAITING_BYTES || this.#waiting.length > MAX_WAITING_MESSAGES) {
      this.#bytes -= this.#waiting.dropOldest()?.data.length ?? 0;
      dropped += 1;
    }
    return dropped;
  }

  /**
   * Ends the subscription: the reader gets the queued messages, then the end, or `reason` is
   * thrown.
   */
  end(reason?: unknown): void {
    this.#close();
    if (reason === undefined) this.#waiting.end();
    else this.#waiting.fail(reason);
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#onEnd();
  }

  async next(): Promise<IteratorResult<PubsubMessage, void>> {
    const result = await this.#iterator.next();
    if (result.done !== true) this.#bytes -= result.value.data.length;
    return result;
  }

  /** Called when the reader stops. */
  async return(): Promise<IteratorResult<PubsubMessage, void>> {
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
