/**
 * Connections that receive into buffers which are used again: to leave a new one for each piece to the garbage collector costs more
 * than to receive it. A piece of an answer is therefore good until whoever is handed it returns, and no longer.
 */
import type { Socket } from "node:net";
import type { buildConnector } from "undici";

/** That a connection takes from the system at a time. */
const RECEIVED_BYTES = 128 * 1024;

/** `build` is that of Undici, which is loaded when somebody needs it. */
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

/** Two of a connection: one is filled while what is in the other has not been read. */
class ReceiveBuffers {
  socket: Socket | undefined;
  #current: Buffer = newBuffer();
  #other: Buffer | undefined;
  /** Bytes that came last. */
  #last = 0;

  /** What is in the current one waits to be read. */
  next(): Buffer {
    const isOtherRead = (this.socket?.readableLength ?? 0) <= this.#last;
    const next = isOtherRead ? (this.#other ?? newBuffer()) : newBuffer();
    this.#other = this.#current;
    this.#current = next;
    return next;
  }

  /** False when no more can be taken now. */
  received(bytes: Uint8Array): boolean {
    this.#last = bytes.length;
    return this.socket?.push(bytes) ?? true;
  }
}

const newBuffer = (): Buffer => Buffer.allocUnsafeSlow(RECEIVED_BYTES);
