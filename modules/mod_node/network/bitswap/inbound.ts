/**
 * Reads the streams that a peer has opened, message by message, and no faster than messages are
 * handled.
 */
import type { Stream, StreamMessageEvent } from "@libp2p/interface";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { allowBuffering, pause, resume } from "../swarm/stream_backpressure.ts";
import { type DecodedMessage, decodeMessage, MAX_MESSAGE_SIZE } from "./message.ts";
import { RefcountedBuffer } from "./refcounted_buffer.ts";

/**
 * Maximum number of bytes of one peer's messages that are verified and stored at a time; above it,
 * reading from the peer is paused.
 */
const MAX_BYTES_IN_PROGRESS = 8 * 1024 * 1024;
/** Maximum number of bytes of incomplete messages over all streams of a peer. */
const MAX_PARTIAL_BYTES = 4 * MAX_MESSAGE_SIZE;

export interface InboundEvents {
  /**
   * Handles a message; resolves when that is done. The memory of the message is then reused, unless
   * the buffer is retained.
   *
   * @throws Error for a message with invalid parts
   */
  message(message: DecodedMessage, memory: RefcountedBuffer): Promise<void> | undefined;
  /** Called after a stream was reset because it carried an invalid message. */
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

  /**
   * Reads a stream to its end. Data that is buffered in a paused stream is read even if the peer
   * has closed it meanwhile.
   */
  add(stream: Stream): void {
    const frames = new FrameReader(MAX_MESSAGE_SIZE, this.#buffers, { transfer: true });
    if (!stream.readableEnded) this.#streams.set(stream, frames);
    allowBuffering(stream);
    stream.addEventListener("message", ({ data }) => this.#read(stream, frames, data));
    stream.addEventListener("end", () => this.#streams.delete(stream));
    // Responses go over a stream that this node opens.
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
      let partialBytes = 0;
      for (const each of this.#streams.values()) partialBytes += each.bufferedBytes;
      if (partialBytes > MAX_PARTIAL_BYTES) throw new Error("too many incomplete messages");
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
      // A resumed stream may deliver so much that the next one has to stay paused.
      for (const stream of this.#streams.keys()) if (this.#inProgress <= MAX_BYTES_IN_PROGRESS) resume(stream);
    });
  }
}
