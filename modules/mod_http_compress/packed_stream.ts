import { Readable } from "node:stream";
import type { Coder, Encoding } from "./encoders.ts";
import type { Jobs } from "./jobs.ts";

export interface PackingDeps {
  readonly jobs: Jobs;
  /** Called for each piece with the bytes that came in and went out. */
  moved(bytesIn: number, bytesOut: number): void;
  /** Called once when the stream ends, for any reason. */
  ended(): void;
}

/**
 * Compresses a body piece by piece, no faster than it is read. Pending output is flushed after
 * `flushAfter` milliseconds without new input; with 0 after each piece, and with undefined only
 * when enough has accumulated.
 */
export class PackedStream extends Readable {
  readonly #source: Readable;
  readonly #pieces: AsyncIterator<unknown>;
  readonly #coder: Coder;
  readonly #flushKind: number;
  readonly #flushAfter: number | undefined;
  readonly #deps: PackingDeps;
  /** The next piece, which has already been requested. */
  #pendingPiece: Promise<IteratorResult<unknown>> | undefined;
  /** Compressed bytes that have not been sent yet. */
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

  /** Produces the next compressed bytes. */
  async #more(): Promise<void> {
    for (;;) {
      this.#pendingPiece ??= handled(this.#pieces.next());
      const next = await this.#within(this.#pendingPiece);
      if (this.destroyed) return;
      let bytesIn = 0;
      if (next === undefined) await this.#flush();
      else if (next.done === true) await this.#finish();
      else {
        this.#pendingPiece = undefined;
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

  /** Resolves to undefined if nothing arrives in time while output is pending. */
  #within(pendingPiece: Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown> | undefined> {
    const delay = this.#flushAfter;
    if (!this.#isHoldingBack || delay === undefined) return pendingPiece;
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<unknown> | undefined>();
    const timer = setTimeout(resolve, delay, undefined);
    pendingPiece.then(resolve, reject).finally(() => clearTimeout(timer));
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
        // A compressor that is destroyed in the middle of a step may never call back.
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

/** Prevents an unhandled rejection when nobody waits for the promise any longer. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
