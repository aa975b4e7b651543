/** Streams that a peer opened: read message by message, no faster than the messages are handled. */
import type { Stream, StreamMessageEvent } from "@libp2p/interface";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { allowBuffering, pause, resume } from "../swarm/stream_backpressure.ts";
import { type DecodedMessage, decodeMessage, MAX_MESSAGE_SIZE } from "./message.ts";
import { RefcountedBuffer } from "./refcounted_buffer.ts";

/** Bytes of messages of one peer that are being verified and stored; beyond, the peer is not read. */
const MAX_BYTES_IN_PROGRESS = 8 * 1024 * 1024;
/** Bytes of incomplete messages over all streams of a peer. */
const MAX_PARTIAL_BYTES = 4 * MAX_MESSAGE_SIZE;

export interface InboundEvents {
  /**
   * Handles a message; resolves when it is done. Then its memory is used again, unless the buffer is retained.
   *
   * @throws Error for a message whose parts are invalid
   */
  message(message: DecodedMessage, memory: RefcountedBuffer): Promise<void> | undefined;
  /** A stream carried something that is no message, and was reset. */
  malformed(reason: unknown): void;
}

/** All streams that one peer has opened. */
export class Inbound {
  readonly #events: InboundEvents;
  readonly #buffers: BufferPool;
  readonly #streams = new Map<Stream, FrameReader>();
  #inProgress = 0;

  constructor(events: InboundEvents, buffers: BufferPool) {
    this.#events = events;
    this.#buffers = buffers;
  }

  /** Reads a stream to its end. What waits in a paused stream is read even if its peer has closed it meanwhile. */
  add(stream: Stream): void {
    const frames = new FrameReader(MAX_MESSAGE_SIZE, this.#buffers, { transfer: true });
    if (!stream.readableEnded) this.#streams.set(stream, frames);
    allowBuffering(stream);
    stream.addEventListener("message", ({ data }) => this.#read(stream, frames, data));
    stream.addEventListener("end", () => this.#streams.delete(stream));
    // Answers go over a stream of our own.
    stream.close().catch(() => {});
    if (this.#inProgress > MAX_BYTES_IN_PROGRESS) pause(stream);
  }

  /** Resets all streams. */
  close(reason: Error): void {
    for (const stream of this.#streams.keys()) stream.abort(reason);
    this.#streams.clear();
  }

  #read(stream: Stream, frames: FrameReader, data: StreamMessageEvent["data"]): void {
    try {
      for (const frame of frames.read(data)) this.#handle(frame);
      let held = 0;
      for (const each of this.#streams.values()) held += each.heldBytes;
      if (held > MAX_PARTIAL_BYTES) throw new Error("too many incomplete messages");
    } catch (reason) {
      this.#streams.delete(stream);
      stream.abort(reason instanceof Error ? reason : new Error(String(reason)));
      this.#events.malformed(reason);
    }
  }

  #handle(frame: Uint8Array): void {
    const memory = new RefcountedBuffer(() => this.#buffers.release(frame));
    const done = this.#events.message(decodeMessage(frame), memory);
    if (done === undefined) {
      memory.release();
      return;
    }
    this.#inProgress += frame.length;
    if (this.#inProgress > MAX_BYTES_IN_PROGRESS) for (const stream of this.#streams.keys()) pause(stream);
    void done.finally(() => {
      memory.release();
      const wasFull = this.#inProgress > MAX_BYTES_IN_PROGRESS;
      this.#inProgress -= frame.length;
      if (!wasFull) return;
      // A stream that is resumed may deliver so much that the next has to wait.
      for (const stream of this.#streams.keys()) if (this.#inProgress <= MAX_BYTES_IN_PROGRESS) resume(stream);
    });
  }
}
