import { Readable } from "node:stream";
import type { EventStreamOptions, ServerEvent } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { eventText } from "./event_text.ts";

/** Events that are written in one go. */
interface Batch {
  readonly texts: string[];
  bytes: number;
  readonly sent: PromiseWithResolvers<void>;
}

/** Events join the batch that waits last up to this size: however small they are, few things wait. */
const MAX_BATCH_BYTES = 16 * 1024;

/** The longest delay of a timer, milliseconds; Node takes a longer one for none. */
const MAX_DELAY = 2 ** 31 - 1;

/**
 * The body of an event stream: gives one batch at a time, the next when the one before has been written. It ends by
 * `close`, with its source, or with whoever reads it.
 */
export class EventBody extends Readable {
  readonly #ended = new AbortController();
  readonly #queue: Batch[] = [];
  readonly #heartbeat: number;
  readonly #maxQueue: number;
  readonly #source: AsyncIterator<ServerEvent | string> | undefined;
  #queued = 0;
  /** Given to the reader, who has not come back yet. */
  #given: Batch | undefined;
  #isWanted = false;
  #isClosing = false;
  #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;

  /** `source` is read when the body is. */
  constructor(options: EventStreamOptions = {}, source?: AsyncIterable<ServerEvent | string>) {
    // A mark of 0: nothing is asked for before it is wanted, so that being asked tells what has been written.
    super({ objectMode: true, highWaterMark: 0 });
    const { heartbeat = 15, retry, max_queue_bytes = 1024 * 1024 } = options;
    this.#heartbeat = Math.min(positive("heartbeat", heartbeat) * 1000, MAX_DELAY);
    this.#maxQueue = positive("max_queue_bytes", max_queue_bytes);
    this.#source = source?.[Symbol.asyncIterator]();
    // Not at once: whoever has made a stream that is over already still hears of it.
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

  /** Ends the stream after what has been put in already. */
  close(): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    if (this.#isWanted) this.#give();
  }

  /** Closes the stream when the signal is given. */
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
    // A source that waits for something ends when that has come.
    Promise.try(() => this.#source?.return?.()).catch(() => undefined);
    done(error);
  }

  #begin(): void {
    this.#hasBegun = true;
    if (this.#heartbeat > 0) {
      // While something waits to be written, the connection is busy anyway.
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

  /** The batch that so many bytes join: the last one that waits, or a new one. */
  #batch(bytes: number): Batch {
    const last = this.#queue.at(-1);
    if (last !== undefined && last.bytes + bytes <= MAX_BATCH_BYTES) return last;
    const batch: Batch = { texts: [], bytes: 0, sent: unheard() };
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

/** A promise of which nobody need hear: who sends to many does not wait for each, and some have left. */
function unheard(): PromiseWithResolvers<void> {
  const sent = Promise.withResolvers<void>();
  sent.promise.catch(() => undefined);
  return sent;
}

function refused(reason: string): Promise<void> {
  const { promise, reject } = unheard();
  reject(new ModhostError("STREAM_CLOSED", { reason }));
  return promise;
}

function positive(option: string, value: number): number {
  if (typeof value === "number" && value >= 0) return value;
  throw new TypeError(`The option ${option} of an event stream is a number from 0, not ${value}`);
}
