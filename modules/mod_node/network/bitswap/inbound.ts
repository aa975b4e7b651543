/** What peers say: streams that they open are read message by message, no faster than the messages are dealt with. */
import type { Stream, StreamMessageEvent } from "@libp2p/interface";
import { FrameReader } from "../../formats/protobuf/frames.ts";
import type { Buffers } from "../../storage/blockstore/buffers.ts";
import { letWait, pause, resume, widen } from "../swarm/stream_backpressure.ts";
import { longestMessage, parseMessage, type Received } from "./message.ts";
import { Lease } from "./refcounted_buffer.ts";

/** Bytes of blocks of one peer that are being checked and stored; beyond that it is not read from. */
const mostInHand = 8 * 1024 * 1024;
/** Bytes that all streams of a peer may hold of messages that are not whole. */
const mostHeld = 4 * longestMessage;

export interface InboundEvents {
  /**
   * A message: resolves when it is dealt with. From then on its memory is used again, unless the lease is shared.
   *
   * @throws Error when it says what cannot be
   */
  message(message: Received, memory: Lease): Promise<void> | undefined;
  /** What came is no message: the stream is given up. */
  malformed(reason: unknown): void;
}

/** All streams that one peer has opened. */
export class Inbound {
  readonly #events: InboundEvents;
  readonly #buffers: Buffers;
  readonly #streams = new Map<Stream, FrameReader>();
  #inHand = 0;

  constructor(events: InboundEvents, buffers: Buffers) {
    this.#events = events;
    this.#buffers = buffers;
  }

  /** Reads a stream until it ends: what waits in a paused one is read although its peer has closed it meanwhile. */
  add(stream: Stream): void {
    const frames = new FrameReader(longestMessage, this.#buffers);
    if (!stream.readableEnded) this.#streams.set(stream, frames);
    letWait(stream);
    widen(stream);
    stream.addEventListener("message", ({ data }) => this.#read(stream, frames, data));
    stream.addEventListener("end", () => this.#streams.delete(stream));
    // Nothing is ever said on a stream of the other side.
    stream.close().catch(() => {});
    if (this.#inHand > mostInHand) pause(stream);
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
      for (const each of this.#streams.values()) held += each.held;
      if (held > mostHeld) throw new Error("messages that are too many");
    } catch (reason) {
      this.#streams.delete(stream);
      stream.abort(reason instanceof Error ? reason : new Error(String(reason)));
      this.#events.malformed(reason);
    }
  }

  #take(frame: Uint8Array): void {
    const memory = new Lease(() => this.#buffers.release(frame));
    const done = this.#events.message(parseMessage(frame), memory);
    if (done === undefined) {
      memory.leave();
      return;
    }
    this.#inHand += frame.length;
    if (this.#inHand > mostInHand) for (const stream of this.#streams.keys()) pause(stream);
    void done.finally(() => {
      memory.leave();
      const full = this.#inHand > mostInHand;
      this.#inHand -= frame.length;
      if (!full) return;
      // Each may bring so much that the next has to wait.
      for (const stream of this.#streams.keys()) if (this.#inHand <= mostInHand) resume(stream);
    });
  }
}
