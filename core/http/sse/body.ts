import { Readable } from "node:stream";
import type { EventStreamOptions, ServerEvent } from "../../types.ts";
import { ModhostError } from "../../util/errors.ts";
import { eventText } from "./text.ts";

/** Events that are written together. */
interface Batch {
  readonly texts: string[];
  bytes: number;
  readonly sent: PromiseWithResolvers<void>;
}

/** Small events are joined into batches of up to this size, so that the queue stays short. */
const MAX_BATCH_BYTES = 16 * 1024;

/** Longest delay of a timer in milliseconds; Node fires timers with a longer one at once. */
const MAX_DELAY = 2 ** 31 - 1;

/**
 * The body of an event stream. It is read one batch at a time: the next one when the one before has
 * been written. It ends by `close`, with its source, or when its reader leaves.
 */
export class EventBody extends Readable {
  readonly #ended = new AbortController();
  readonly #queue: Batch[] = [];
  readonly #heartbeat: number;
  readonly #maxQueue: number;
  readonly #source: AsyncIterator<ServerEvent | string> | undefined;
  #queued = 0;
  /** The batch that the reader is writing, until it requests the next. */
  #given: Batch | undefined;
  #isWanted = false;
  #isClosing = false;
  #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;

  /** `source` is read while the body is read. */
  constructor(options: EventStreamOptions = {}, source?: AsyncIterable<ServerEvent | string>) {
    // With a high-water mark of 0 each `_read` means that the batch before has been written.
    super({ objectMode: true, highWaterMark: 0 });
    const { heartbeat = 15, retry, max_queue_bytes = 1024 * 1024 } = options;
    this.#heartbeat = Math.min(positive("heartbeat", heartbeat) * 1000, MAX_DELAY);
    this.#maxQueue = positive("max_queue_bytes", max_queue_bytes);
    this.#source = source?.[Symbol.asyncIterator]();
    // Aborted on "close" and not at once, so that the creator of a stream that is already over can
    // still listen.
    this.once("close", () => this.#ended.abort(new DOMException("The event stream has ended", "AbortError")));
    if (retry !== undefined) this.put(eventText({ retry })).catch(() => undefined);
  }

  /** Aborted when the stream is over, however it ends. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Resolves when the text has been written; rejects with STREAM_CLOSED when it will not be. */
  put(text: string): Promise<void> {
    if (this.#isClosing || this.destroyed) return refused("it has ended");
    const length = Buffer.byteLength(text);
    if (this.#queued > 0 && this.#queued + length > this.#maxQueue) {
      const reason = "its client reads too slowly";
      this.#drop(reason);
      this.close();
      return refused(reason);
    }
    const batch = this.#batch(length);
    batch.texts.push(text);
    batch.bytes += length;
    this.#queued += length;
    this.#timer?.refresh();
    if (this.#isWanted) this.#give();
    return batch.sent.promise;
  }

  /** Ends the stream once the queue is written. */
  close(): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    if (this.#isWanted) this.#give();
  }

  /** Closes the stream when the signal is aborted. */
  endWith(signal: AbortSignal): void {
    if (signal.aborted) this.close();
    else signal.addEventListener("abort", () => this.close(), { signal: this.ended });
  }

  override _read(): void {
    this.#given?.sent.resolve();
    this.#given = undefined;
    this.#isWanted = true;
    if (!this.#hasBegun) this.#begin();
    this.#give();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearInterval(this.#timer);
    this.#isClosing = true;
    const reason = "it has ended";
    this.#given?.sent.reject(new ModhostError("STREAM_CLOSED", { reason }));
    this.#drop(reason);
    // A waiting generator ends only when the value that it waits for has arrived.
    Promise.try(() => this.#source?.return?.()).catch(() => undefined);
    done(error);
  }

  #begin(): void {
    this.#hasBegun = true;
    if (this.#heartbeat > 0) {
      // No heartbeat is needed while something is being written.
      const beat = () => this.#isWanted && this.put(":\n\n");
      this.#timer = setInterval(beat, this.#heartbeat).unref();
    }
    if (this.#source !== undefined) this.#follow(this.#source).catch((error: Error) => this.destroy(error));
  }

  async #follow(source: AsyncIterator<ServerEvent | string>): Promise<void> {
    for (;;) {
      const { done, value } = await source.next();
      if (this.#isClosing) return;
      if (done === true) return this.close();
      await this.put(eventText(value));
    }
  }

  /** Returns the batch for an event of `bytes` bytes: the last one in the queue, or a new one. */
  #batch(bytes: number): Batch {
    const last = this.#queue.at(-1);
    if (last !== undefined && last.bytes + bytes <= MAX_BATCH_BYTES) return last;
    const batch: Batch = { texts: [], bytes: 0, sent: ignorable() };
    this.#queue.push(batch);
    return batch;
  }

  #give(): void {
    const batch = this.#queue.shift();
    if (batch === undefined && !this.#isClosing) return;
    this.#isWanted = false;
    this.#given = batch;
    if (batch === undefined) {
      this.push(null);
      return;
    }
    this.#queued -= batch.bytes;
    this.push(batch.texts.join(""));
  }

  #drop(reason: string): void {
    for (const { sent } of this.#queue.splice(0)) sent.reject(new ModhostError("STREAM_CLOSED", { reason }));
    this.#queued = 0;
  }
}

/**
 * A promise whose rejection may be ignored: a module that sends to many clients need not wait for
 * each of them.
 */
function ignorable(): PromiseWithResolvers<void> {
  const sent = Promise.withResolvers<void>();
  sent.promise.catch(() => undefined);
  return sent;
}

function refused(reason: string): Promise<void> {
  const { promise, reject } = ignorable();
  reject(new ModhostError("STREAM_CLOSED", { reason }));
  return promise;
}

function positive(option: string, value: number): number {
  if (typeof value === "number" && value >= 0) return value;
  throw new TypeError(`The option ${option} of an event stream is a number from 0, not ${value}`);
}
