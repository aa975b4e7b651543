/** The answer to a request as it comes in: its head first, and its body to whoever takes it. */
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";

export interface AnswerHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

type Controller = Dispatcher.DispatchController;
type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

/** Handles one request of a pool whose connections use their buffers again; see `reusingBuffers`. */
export class IncomingAnswer implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal | undefined;
  readonly #head = Promise.withResolvers<AnswerHead>();
  readonly #end = Promise.withResolvers<void>();
  #controller: Controller | undefined;
  #take: ((piece: Uint8Array) => void) | undefined;
  /** Copies of what came before somebody took it. */
  #early: Uint8Array[] = [];
  #isOver = false;

  /** The signal ends the request. */
  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    signal?.addEventListener("abort", this.#abort);
    for (const { promise } of [this.#head, this.#end]) promise.catch(() => {});
  }

  /** Resolves when the status is known. The body waits. @throws what the connection fails with, or the reason of the signal */
  get head(): Promise<AnswerHead> {
    return this.#head.promise;
  }

  /**
   * Calls `take` with each piece of the body, which is good until that returns. What it throws ends the request. To be called once.
   *
   * @throws as `head`, or what `take` throws
   */
  async receive(take: (piece: Uint8Array) => void): Promise<void> {
    for (const piece of this.#early) take(piece);
    this.#early = [];
    this.#take = take;
    this.#goOn();
    await this.#end.promise;
  }

  /**
   * In place of `receive`, for those who take their time: little is received while they do. Leaving the loop ends the request.
   * `onReceive` is called with each piece that comes, and ends the request by throwing; `onGoOn` when receiving goes on.
   */
  pieces(onReceive: (piece: Uint8Array) => void, onGoOn: () => void): AsyncIterable<Uint8Array> {
    let isFull = false;
    const body = new Readable({
      read: () => {
        if (!isFull) return;
        isFull = false;
        onGoOn();
        this.#goOn();
      },
      destroy: (error, done) => {
        this.end();
        done(error);
      },
    });
    const take = (piece: Uint8Array) => {
      onReceive(piece);
      isFull = !body.push(Buffer.from(piece));
      if (isFull) this.#controller?.pause();
    };
    this.receive(take).then(
      () => body.push(null),
      (error: Error) => body.destroy(error),
    );
    return body;
  }

  /** Nobody wants the rest. */
  end(): void {
    if (!this.#isOver) this.#controller?.abort(new Error("the rest of the answer is not wanted"));
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
    this.#over();
    this.#end.resolve();
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#over();
    this.#head.reject(error);
    this.#end.reject(error);
  }

  /** Also where it has not begun: then no connection tells of it. */
  readonly #abort = (): void => {
    const reason: unknown = this.#signal?.reason;
    this.#head.reject(reason);
    this.#controller?.abort(reason as Error);
  };

  #goOn(): void {
    if (!this.#isOver) this.#controller?.resume();
  }

  #over(): void {
    this.#isOver = true;
    this.#signal?.removeEventListener("abort", this.#abort);
  }
}
