import type { Http2ServerRequest } from "node:http2";
import type { NodeRequest, NodeResponse } from "./node_messages.ts";
import { bytesTaken } from "./patches/node/bytes_taken.ts";
import { type Flow, type ProgressWatch, STREAM_COST, type Watched } from "./progress.ts";

/** The exchange whose answer is sent. */
interface Sender {
  readonly http2: boolean;
  readonly gone: boolean;
  /** Seconds that the client may pause while it sends its body. */
  readonly uploadPause: number;
  readonly service: { readonly watch: ProgressWatch };
  /** `received` are bytes of its body. */
  readonly request: { readonly raw: NodeRequest; readonly received: number };
  readonly response: { readonly raw: NodeResponse; readonly bytes: number };
  cut(): void;
}

/** An answer on its way to a client that may be slow: what it has taken, and what is held for it. */
export class Sending implements Flow {
  readonly #sender: Sender;
  /** While the client must take in what is written. */
  #watched: Watched | undefined;
  /** The body is sent piece by piece. */
  #isStreamed = false;
  /** Until the first piece is written. */
  #turn: number | undefined;

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  moved(): number {
    const { http2, request, response } = this.#sender;
    // HTTP/1: bytes that the kernel has taken. HTTP/2: bytes handed over, less those still buffered in the stream.
    const taken = http2 ? undefined : bytesTaken((request.raw as Exclude<NodeRequest, Http2ServerRequest>).socket);
    // Who still sends the body may read the answer afterwards.
    return (taken ?? response.bytes - response.raw.writableLength) + request.received;
  }

  waiting(): boolean {
    return true;
  }

  expired(): void {
    this.#sender.cut();
  }

  /** A client that reads the answer when it has sent everything may be waiting for more to send. */
  patience(): number {
    const { request, uploadPause } = this.#sender;
    return request.raw.complete ? 0 : uploadPause * 1000;
  }

  held(): number {
    return this.#sender.response.raw.writableLength + (this.#isStreamed ? STREAM_COST : 0);
  }

  /** Waits until there is room for the pieces of a body, and whatever they are read from; undefined when there is. */
  enter(): Promise<void> | undefined {
    if (this.#isStreamed) return undefined;
    this.#isStreamed = true;
    const turn = this.#sender.service.watch.room();
    if (typeof turn === "number") {
      this.#turn = turn;
      return undefined;
    }
    return turn.then((given) => {
      this.#turn = given;
      if (this.#sender.gone) this.entered();
    });
  }

  /** The first piece is written, or there is none. */
  entered(): void {
    if (this.#turn === undefined) return;
    this.#sender.service.watch.begun(this.#turn);
    this.#turn = undefined;
  }

  /** From now until `unwatch` the client must take in what is written to it. */
  watch(): void {
    this.unwatch();
    this.#watched = this.#sender.service.watch.add(this);
  }

  unwatch(): void {
    this.#sender.service.watch.delete(this.#watched);
  }

  /** The answer is over. */
  over(): void {
    this.unwatch();
    this.entered();
  }
}
