/**
 * Presents a stream of a peer as a Node.js stream, for protocols that Node.js libraries implement,
 * such as HTTP.
 */
import { Duplex } from "node:stream";
import type { Stream } from "@libp2p/interface";
import { allowBuffering, drained, pause, resume } from "../swarm/stream_backpressure.ts";

/** Each direction ends independently; destroying the duplex resets the stream. */
export class StreamDuplex extends Duplex {
  /** Number of bytes transferred so far, in both directions. */
  moved = 0;
  readonly #stream: Stream;

  constructor(stream: Stream) {
    super({ allowHalfOpen: true });
    this.#stream = stream;
    allowBuffering(stream);
    stream.addEventListener("message", ({ data }) => {
      const pieces = data instanceof Uint8Array ? [data] : [...data];
      for (const piece of pieces) {
        this.moved += piece.length;
        if (!this.push(piece)) pause(stream);
      }
    });
    const end = () => {
      if (stream.status !== "aborted" && stream.status !== "reset") this.push(null);
    };
    // As in `splice`: data that arrived together with the negotiation and the end is delivered in
    // one piece first.
    const hasEnded = stream.readableEnded;
    if (hasEnded && stream.readBufferLength === 0) end();
    else stream.addEventListener(hasEnded ? "message" : "end", end, { once: true });
    stream.addEventListener("close", ({ error }) => {
      if (error !== undefined) this.destroy(error);
    });
    if (stream.status === "aborted" || stream.status === "reset") this.destroy(new Error("the stream was reset"));
  }

  override _read(): void {
    resume(this.#stream);
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.moved += bytes.length;
    let isTaken: boolean;
    try {
      isTaken = this.#stream.send(bytes);
    } catch (error) {
      done(error as Error);
      return;
    }
    if (isTaken) done();
    else drained(this.#stream).then(() => done(), done);
  }

  override _final(done: (error?: Error) => void): void {
    this.#stream.close().then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const isOver = this.readableEnded && this.writableFinished;
    if (!isOver) this.#stream.abort(error ?? new Error("it is no longer needed"));
    done(error);
  }
}
