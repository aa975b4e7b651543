/** What peers say: streams that they open are read message by message, no faster than the messages are dealt with. */
import type { Stream, StreamMessageEvent } from "@libp2p/interface";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { allowBuffering, pause, resume } from "../swarm/stream_backpressure.ts";
import { type DecodedMessage, decodeMessage, MAX_MESSAGE_SIZE } from "./message.ts";
import { RefcountedBuffer } from "./refcounted_buffer.ts";

/** Bytes of blocks of one peer that are being checked and stored; beyond that it is not read from. */
const MAX_BYTES_IN_PROGRESS = 8 * 1024 * 1024;
/** Bytes that all streams of a peer may hold of messages that are not whole. */
const MAX_PARTIAL_BYTES = 4 * MAX_MESSAGE_SIZE;

export interface InboundEvents {
  /**
   * A message: resolves when it is dealt with. From then on its memory is used again, unless the lease is shared.
   *
   * @throws Error when it says what cannot be
   */
  message(message: DecodedMessage, memory: RefcountedBuffer): Promise<void> | undefined;
  /** What came is no message: the stream is given up. */
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

  /** Reads a stream until it ends: what waits in a paused one is read although its peer has closed it meanwhile. */
  add(stream: Stream): void {
    const frames = new FrameReader(MAX_MESSAGE_SIZE, this.#buffers);
    if (!stream.readableEnded) this.#streams.set(stream, frames);
    allowBuffering(stream);
    stream.addEventListener("message", ({ data }) => this.#read(stream, frames, data));
    stream.addEventListener("end", () => this.#streams.delete(stream));
    // Nothing is ever said on a stream of the other side.
    stream.close().catch(() => {});
    if (this.#inProgress > MAX_BYTES_IN_PROGRESS) pause(stream);
  }

  /** Nothing more is read. */
  close(reason: Error): void {
    for (const stream of this.#streams.keys()) stream.abort(reason);
    this.#streams.clear();
  }

  #read(stream: Stream, frames: FrameReader, data: StreamMessageEvent["data"]): void {
    try {
      for (const frame of frames.read(data)) this.#take(frame);
      let held = 0;
      for (const each of this.#streams.values()) held += each.heldBytes;
      if (held > MAX_PARTIAL_BYTES) throw new Error("messages that are too many");
    } catch (reason) {
      this.#streams.delete(stream);
      stream.abort(reason instanceof Error ? reason : new Error(String(reason)));
      this.#events.malformed(reason);
    }
  }

  #take(frame: Uint8Array): void {
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
      const full = this.#inProgress > MAX_BYTES_IN_PROGRESS;
      this.#inProgress -= frame.length;
      if (!full) return;
      // Each may bring so much that the next has to wait.
      for (const stream of this.#streams.keys()) if (this.#inProgress <= MAX_BYTES_IN_PROGRESS) resume(stream);
    });
  }
}
