import type { Http2ServerRequest } from "node:http2";
import type { NodeRequest, NodeResponse } from "../../util/node_messages.ts";
import { type Flow, type ProgressWatch, STREAM_COST, type Watched } from "../connection/progress.ts";
import { bytesTaken } from "../patches/node/bytes_taken.ts";

/** The exchange whose response is sent. */
interface Sender {
  readonly http2: boolean;
  readonly gone: boolean;
  /** Seconds that the client may pause while it sends its body. */
  readonly uploadPause: number;
  readonly service: { readonly watch: ProgressWatch };
  /** `received`: bytes of the request body so far. */
  readonly request: { readonly raw: NodeRequest; readonly received: number };
  readonly response: { readonly raw: NodeResponse; readonly bytes: number };
  cut(): void;
}

/**
 * Watches a response that is being sent: the bytes that the client has taken, and the memory that
 * waits for it.
 */
export class Sending implements Flow {
  readonly #sender: Sender;
  /** Set while the client must make progress in reading. */
  #watched: Watched | undefined;
  /** The body is sent piece by piece. */
  #isStreamed = false;
  /** The reservation from `ProgressWatch.room`, until the first piece is written. */
  #turn: number | undefined;

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  moved(): number {
    const { http2, request, response } = this.#sender;
    // HTTP/1: bytes that the kernel has taken. HTTP/2: bytes handed over, less those still buffered
    // in the stream.
    const taken = http2 ? undefined : bytesTaken((request.raw as Exclude<NodeRequest, Http2ServerRequest>).socket);
    // A client that is still sending its body may read the response afterwards.
    return (taken ?? response.bytes - response.raw.writableLength) + request.received;
  }

  waiting(): boolean {
    return true;
  }

  expired(): void {
    this.#sender.cut();
  }

  /**
   * A client that reads the response only after sending its body may be waiting for more data to
   * send.
   */
  patience(): number {
    const { request, uploadPause } = this.#sender;
    return request.raw.complete ? 0 : uploadPause * 1000;
  }

  buffered(): number {
    return this.#sender.response.raw.writableLength + (this.#isStreamed ? STREAM_COST : 0);
  }

  /**
   * Waits for memory for the pieces of a body and its source. Returns undefined when memory is
   * available now.
   */
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

  /** Called when the first piece is written, or when there is none. */
  entered(): void {
    if (this.#turn === undefined) return;
    this.#sender.service.watch.begun(this.#turn);
    this.#turn = undefined;
  }

  /** Requires the client to make progress in reading until `unwatch` is called. */
  watch(): void {
    this.unwatch();
    this.#watched = this.#sender.service.watch.add(this);
  }

  unwatch(): void {
    this.#sender.service.watch.delete(this.#watched);
  }

  /** Called when the response is over. */
  over(): void {
    this.unwatch();
    this.entered();
  }
}
