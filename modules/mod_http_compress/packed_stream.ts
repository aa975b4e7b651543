import { Readable } from "node:stream";
import type { Coder, Encoding } from "./encodings.ts";
import type { Jobs } from "./jobs.ts";

export interface PackingDeps {
  readonly jobs: Jobs;
  /** Called for each piece with the bytes that came in and went out. */
  moved(bytesIn: number, bytesOut: number): void;
  /** Called once, however it ends. */
  ended(): void;
}

/**
 * A body compressed piece by piece, no faster than it is read. What has come in is sent on after `flushAfter`
 * milliseconds in which nothing more came; with 0 after each piece, undefined: when there is enough of it.
 */
export class PackedStream extends Readable {
  readonly #source: Readable;
  readonly #pieces: AsyncIterator<unknown>;
  readonly #coder: Coder;
  readonly #flushKind: number;
  readonly #flushAfter: number | undefined;
  readonly #deps: PackingDeps;
  /** The next piece, asked for already. */
  #asked: Promise<IteratorResult<unknown>> | undefined;
  /** Compressed bytes that are to be sent. */
  readonly #made: Buffer[] = [];
  #isHoldingBack = false;

  constructor(source: Readable, encoding: Encoding, flushAfter: number | undefined, deps: PackingDeps) {
    super();
    this.#source = source;
    this.#pieces = source[Symbol.asyncIterator]();
    this.#coder = encoding.stream();
    this.#coder.on("error", (error) => this.destroy(error));
    this.#flushKind = encoding.flushKind;
    this.#flushAfter = flushAfter;
    this.#deps = deps;
  }

  override _read(): void {
    this.#more().catch((error: Error) => this.destroy(error));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#coder.destroy();
    this.#source.on("error", () => undefined).destroy();
    this.#deps.ended();
    done(error);
  }

  /** Gives the next compressed bytes. */
  async #more(): Promise<void> {
    for (;;) {
      this.#asked ??= heard(this.#pieces.next());
      const next = await this.#within(this.#asked);
      if (this.destroyed) return;
      let bytesIn = 0;
      if (next === undefined) await this.#flush();
      else if (next.done === true) await this.#finish();
      else {
        this.#asked = undefined;
        const piece = next.value as string | Uint8Array;
        bytesIn = typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
        await this.#run((done) => this.#coder.write(piece, done));
        this.#isHoldingBack = true;
        if (this.#flushAfter === 0) await this.#flush();
      }
      if (this.destroyed) return;
      const made = Buffer.concat(this.#made.splice(0));
      this.#deps.moved(bytesIn, made.length);
      if (made.length > 0) this.push(made);
      if (next?.done === true) this.push(null);
      else if (made.length === 0) continue;
      return;
    }
  }

  /** Undefined: nothing came in time, and something waits to be sent. */
  #within(asked: Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown> | undefined> {
    const delay = this.#flushAfter;
    if (!this.#isHoldingBack || delay === undefined) return asked;
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<unknown> | undefined>();
    const timer = setTimeout(resolve, delay, undefined);
    asked.then(resolve, reject).finally(() => clearTimeout(timer));
    return promise;
  }

  async #flush(): Promise<void> {
    await this.#run((done) => this.#coder.flush(this.#flushKind, done));
    this.#isHoldingBack = false;
  }

  #run(step: (done: (error?: Error | null) => void) => unknown): Promise<void> {
    return this.#deps.jobs.wait(() => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      if (this.destroyed) resolve();
      else {
        // A coder that is destroyed in the middle of a step may never call back.
        this.once("close", resolve);
        step((error) => {
          this.off("close", resolve);
          this.#take();
          if (error) reject(error);
          else resolve();
        });
      }
      return promise;
    });
  }

  #take(): void {
    for (let piece = this.#coder.read(); piece !== null; piece = this.#coder.read()) this.#made.push(piece);
  }

  #finish(): Promise<void> {
    return this.#run((done) => {
      this.#coder.on("data", (piece: Buffer) => this.#made.push(piece)).once("end", done);
      this.#coder.end();
    });
  }
}

/** Whoever has left by then is not told of an error. */
function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
