/**
 * Produces response lines while the request body still arrives. A client may send its whole body
 * before it reads the first line; if lines were only made on demand, both sides would wait for each
 * other.
 */
import { Backlog, type BacklogLimits } from "./backlog.ts";

export interface ReadAheadOptions extends Partial<BacklogLimits> {
  /** Returns the folder for the overflow file; it is created when missing. */
  readonly folder: () => string;
  /**
   * Returns whether the client may still be sending. Once it has finished, lines are made on
   * demand.
   */
  readonly isUploading: () => boolean;
}

/**
 * Reads `source` ahead of its reader while the body arrives. Yields the same bytes, joined where
 * the reader lags behind.
 */
export class ReadAhead implements AsyncIterator<Uint8Array, undefined> {
  readonly #source: AsyncIterator<string | Uint8Array>;
  readonly #options: ReadAheadOptions;
  readonly #backlog: Backlog;
  #running: Promise<void> | undefined;
  /** Resumes the producer while it waits for the reader. */
  #wakeProducer: (() => void) | undefined;
  #isOver = false;
  #failure: { readonly reason: unknown } | undefined;
  /** Resumes the reader while it waits for data. */
  #wakeReader: (() => void) | undefined;

  constructor(source: AsyncIterator<string | Uint8Array>, options: ReadAheadOptions) {
    this.#source = source;
    this.#options = options;
    this.#backlog = new Backlog(options.folder, options);
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#running ??= this.#run();
    for (;;) {
      const piece = await this.#backlog.take();
      this.#wakeProducer?.();
      if (piece !== undefined) return { done: false, value: piece };
      if (!this.#backlog.isEmpty) continue;
      if (this.#isOver) break;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
      this.#wakeReader = undefined;
    }
    await this.#backlog.close();
    if (this.#failure !== undefined) throw this.#failure.reason;
    return { done: true, value: undefined };
  }

  /** Ends the source. The source may wait for the body, which the caller has already ended. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true;
    this.#wakeProducer?.();
    this.#wakeReader?.();
    await this.#source.return?.();
    await this.#running;
    await this.#backlog.close();
    return { done: true, value: undefined };
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isOver) {
        const { done, value } = await this.#source.next();
        if (done === true || this.#isOver) break;
        await this.#backlog.put(typeof value === "string" ? Buffer.from(value) : value);
        this.#wakeReader?.();
        await this.#waitForRoom();
      }
    } catch (reason) {
      this.#failure = { reason };
    } finally {
      this.#isOver = true;
      this.#wakeReader?.();
    }
  }

  /** Waits for the reader while producing ahead is not allowed. */
  async #waitForRoom(): Promise<void> {
    const mayGoOn = () =>
      this.#isOver || this.#backlog.isEmpty || (this.#options.isUploading() && !this.#backlog.isFull);
    while (!mayGoOn()) {
      await new Promise<void>((resolve) => {
        this.#wakeProducer = resolve;
      });
      this.#wakeProducer = undefined;
    }
  }
}
