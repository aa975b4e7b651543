/** Splits a stream of bytes into messages. Each message begins with its length. */
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";

const lengthBytes = 4;

export class Framing {
  readonly #buffers: BufferPool;
  /** An incomplete message: the bytes so far, in a buffer of its full length. */
  #message: Buffer | undefined;
  #filled = 0;
  readonly #length = Buffer.alloc(lengthBytes);
  #lengthFilled = 0;

  /** @param buffers pool for the messages */
  constructor(buffers: BufferPool) {
    this.#buffers = buffers;
  }

  /** Yields the complete messages. Their bytes belong to the caller. */
  *take(bytes: Buffer): Generator<Buffer, void, undefined> {
    let at = 0;
    while (at < bytes.length) {
      if (this.#message === undefined) {
        const taken = bytes.copy(this.#length, this.#lengthFilled, at, at + lengthBytes - this.#lengthFilled);
        at += taken;
        this.#lengthFilled += taken;
        if (this.#lengthFilled < lengthBytes) return;
        this.#begin();
      }
      const message = this.#message as unknown as Buffer;
      const taken = bytes.copy(message, this.#filled, at);
      at += taken;
      this.#filled += taken;
      if (this.#filled === message.length) {
        this.#message = undefined;
        yield message;
      }
    }
  }

  #begin(): void {
    const { buffer, byteOffset, length } = this.#buffers.take(this.#length.readUInt32LE(0));
    this.#message = Buffer.from(buffer, byteOffset, length);
    this.#message.set(this.#length);
    this.#filled = lengthBytes;
    this.#lengthFilled = 0;
  }
}
