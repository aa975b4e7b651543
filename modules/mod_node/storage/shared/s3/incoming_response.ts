/** An HTTP response while it arrives: first its head, then its body. */
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";

export interface ResponseHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

type Controller = Dispatcher.DispatchController;
type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

/** Handles one request of a pool whose connections reuse their buffers; see `reusingBuffers`. */
export class IncomingResponse implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal | undefined;
  readonly #head = Promise.withResolvers<ResponseHead>();
  readonly #end = Promise.withResolvers<void>();
  #controller: Controller | undefined;
  #take: ((piece: Uint8Array) => void) | undefined;
  /** Copies of pieces that arrived before `receive` was called. */
  #early: Uint8Array[] = [];
  #hasEnded = false;

  /** `signal` aborts the request. */
  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    signal?.addEventListener("abort", this.#abort);
    for (const { promise } of [this.#head, this.#end]) promise.catch(() => {});
  }

  /**
   * Resolves when the status is known. The body is not received yet.
   * @throws the error of the connection, or the reason of the signal
   */
  get head(): Promise<ResponseHead> {
    return this.#head.promise;
  }

  /**
   * Calls `take` with each piece of the body; the piece is valid until `take` returns. An error
   * that `take` throws aborts the request. Must be called only once.
   *
   * @throws the errors of `head`, or the error of `take`
   */
  async receive(take: (piece: Uint8Array) => void): Promise<void> {
    for (const piece of this.#early) take(piece);
    this.#early = [];
    this.#take = take;
    this.#resume();
    await this.#end.promise;
  }

  /**
   * Returns the body as a stream for slow readers, with backpressure. May be called instead of
   * `receive`. Leaving the loop aborts the request. `onReceive` is called with each arriving piece
   * and aborts the request by throwing. `onResume` is called when receiving resumes.
   */
  pieces(onReceive: (piece: Uint8Array) => void, onResume: () => void): AsyncIterable<Uint8Array> {
    let isPaused = false;
    const body = new Readable({
      read: () => {
        if (!isPaused) return;
        isPaused = false;
        onResume();
        this.#resume();
      },
      destroy: (error, done) => {
        this.end();
        done(error);
      },
    });
    const take = (piece: Uint8Array) => {
      onReceive(piece);
      isPaused = !body.push(Buffer.from(piece));
      if (isPaused) this.#controller?.pause();
    };
    this.receive(take).then(
      () => body.push(null),
      (error: Error) => body.destroy(error),
    );
    return body;
  }

  /** Aborts the request because nobody wants the rest. */
  end(): void {
    if (!this.#hasEnded) this.#controller?.abort(new Error("the rest of the response is not wanted"));
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#signal?.aborted === true) controller.abort(this.#signal.reason);
  }

  onResponseStart(controller: Controller, status: number, headers: Headers): void {
    if (status < 200) return;
    controller.pause();
    const single = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]);
    this.#head.resolve({ status, headers: Object.fromEntries(single) });
  }

  onResponseData(_controller: Controller, piece: Uint8Array): void {
    if (this.#take === undefined) this.#early.push(Buffer.from(piece));
    else this.#take(piece);
  }

  onResponseEnd(): void {
    this.#finish();
    this.#end.resolve();
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#finish();
    this.#head.reject(error);
    this.#end.reject(error);
  }

  /** Also rejects a request that has not begun: no connection would report its end. */
  readonly #abort = (): void => {
    const reason: unknown = this.#signal?.reason;
    this.#head.reject(reason);
    this.#controller?.abort(reason as Error);
  };

  #resume(): void {
    if (!this.#hasEnded) this.#controller?.resume();
  }

  #finish(): void {
    this.#hasEnded = true;
    this.#signal?.removeEventListener("abort", this.#abort);
  }
}
