import { Readable } from "node:stream";
import { ModhostError } from "../errors.ts";
import type { EventStreamOptions, ServerEvent } from "../types.ts";

interface Piece {
  readonly text: string;
  readonly sent: PromiseWithResolvers<void>;
}

/**
 * The body of an event stream: gives one piece at a time, the next when the one before has been written. It ends by
 * `close`, with its source, or with whoever reads it.
 */
export class EventBody extends Readable {
  readonly #ended = new AbortController();
  readonly #queue: Piece[] = [];
  readonly #heartbeat: number;
  readonly #maxQueue: number;
  readonly #source: AsyncIterator<ServerEvent | string> | undefined;
  #queued = 0;
  /** Given to the reader, who has not come back yet. */
  #given: Piece | undefined;
  #isWanted = false;
  #isClosing = false;
  #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;

  /** `source` is read when the body is. */
  constructor(options: EventStreamOptions = {}, source?: AsyncIterable<ServerEvent | string>) {
    // A mark of 0: nothing is asked for before it is wanted, so that being asked tells what has been written.
    super({ objectMode: true, highWaterMark: 0 });
    const { heartbeat = 15, retry, max_queue = 1024 * 1024 } = options;
    this.#heartbeat = positive("heartbeat", heartbeat) * 1000;
    this.#maxQueue = positive("max_queue", max_queue);
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
    const sent = Promise.withResolvers<void>();
    // Whoever sends to many does not wait for each: a client that has left is no unhandled rejection.
    sent.promise.catch(() => undefined);
    if (this.#isClosing || this.destroyed) {
      sent.reject(new ModhostError("STREAM_CLOSED", { reason: "it has ended" }));
      return sent.promise;
    }
    const length = Buffer.byteLength(text);
    if (this.#queued > 0 && this.#queued + length > this.#maxQueue) {
      sent.reject(new ModhostError("STREAM_CLOSED", { reason: "its client reads too slowly" }));
      this.#drop("its client reads too slowly");
      this.close();
      return sent.promise;
    }
    this.#queue.push({ text, sent });
    this.#queued += length;
    this.#timer?.refresh();
    if (this.#isWanted) this.#give();
    return sent.promise;
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

  #give(): void {
    const piece = this.#queue.shift();
    if (piece === undefined && !this.#isClosing) return;
    this.#isWanted = false;
    this.#given = piece;
    if (piece === undefined) {
      this.push(null);
      return;
    }
    this.#queued -= Buffer.byteLength(piece.text);
    this.push(piece.text);
  }

  #drop(reason: string): void {
    for (const { sent } of this.#queue.splice(0)) sent.reject(new ModhostError("STREAM_CLOSED", { reason }));
    this.#queued = 0;
  }
}

/** An event in wire form. Throws a TypeError for what would not arrive as it was given. */
export function eventText(event: ServerEvent | string): string {
  const { event: type, data, id, retry } = typeof event === "string" ? { data: event } : (event as ServerEvent);
  let text = "";
  if (type !== undefined) text += `event: ${oneLine("event", type)}\n`;
  if (id !== undefined) text += `id: ${oneLine("id", id)}\n`;
  if (retry !== undefined) {
    if (!Number.isSafeInteger(retry) || retry < 0)
      throw new TypeError(`retry is a number of milliseconds, not ${retry}`);
    text += `retry: ${retry}\n`;
  }
  // Without data there is no event for the client, only an id or a retry time that it keeps.
  if (data !== undefined || type !== undefined) text += lines("data: ", data ?? "");
  return `${text}\n`;
}

/** A comment in wire form, which clients ignore. */
export function commentText(text: string): string {
  return `${lines(": ", text)}\n`;
}

function lines(prefix: string, text: string): string {
  if (typeof text !== "string") throw new TypeError(`The data of an event is text, not a ${typeof text}`);
  return text
    .split(/\r\n|\r|\n/)
    .map((line) => `${prefix}${line}\n`)
    .join("");
}

function oneLine(field: string, text: string): string {
  // A client ignores an id with a NUL.
  if (typeof text !== "string" || /[\r\n\0]/.test(text)) {
    throw new TypeError(`The ${field} of an event is text without line breaks, not ${JSON.stringify(text)}`);
  }
  return text;
}

function positive(option: string, value: number): number {
  if (typeof value === "number" && value >= 0) return value;
  throw new TypeError(`The option ${option} of an event stream is a number from 0, not ${value}`);
}
