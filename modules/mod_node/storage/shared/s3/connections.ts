/**
 * Connections that receive into buffers which they reuse. Allocating a buffer for each piece costs
 * more in garbage collection than receiving the piece. So a piece of a response is valid only until
 * its receiver returns.
 */
import type { Socket } from "node:net";
import type { buildConnector } from "undici";

/** Bytes that a connection reads from the system at a time. */
const RECEIVED_BYTES = 128 * 1024;

/**
 * Returns a connector that reuses its buffers. `build` is the function of Undici, which is loaded
 * on demand.
 */
export function reusingBuffers(
  build: typeof buildConnector,
  options: buildConnector.BuildOptions,
): buildConnector.connector {
  return (to, callback) => {
    const buffers = new ReceiveBuffers();
    const onread = {
      buffer: () => buffers.next(),
      callback: (length: number, bytes: Uint8Array) => buffers.received(bytes.subarray(0, length)),
    };
    const connect = build({ ...options, onread });
    connect(to, (...outcome) => {
      buffers.socket = outcome[1] ?? undefined;
      callback(...outcome);
    });
  };
}

/** Two buffers of a connection: one is filled while data in the other is unread. */
class ReceiveBuffers {
  socket: Socket | undefined;
  #current: Buffer = newBuffer();
  #other: Buffer | undefined;
  /** Number of bytes in the last piece. */
  #last = 0;

  /** Returns the buffer for the next piece. The data in the current buffer is still unread. */
  next(): Buffer {
    const isOtherRead = (this.socket?.readableLength ?? 0) <= this.#last;
    const next = isOtherRead ? (this.#other ?? newBuffer()) : newBuffer();
    this.#other = this.#current;
    this.#current = next;
    return next;
  }

  /** Passes received bytes on; false when the stream cannot take more now. */
  received(bytes: Uint8Array): boolean {
    this.#last = bytes.length;
    return this.socket?.push(bytes) ?? true;
  }
}

const newBuffer = (): Buffer => Buffer.allocUnsafeSlow(RECEIVED_BYTES);
