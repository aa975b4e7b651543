/**
 * Sets Node's option `onread` on a connection that is open already. Node.js offers it for
 * connections that it opens, and neither for accepted ones nor for those of an upgrade.
 */
import { Socket } from "node:net";

/**
 * Fields in which a socket keeps its option `onread`: the buffer to read into, the function called
 * after each read, and the function that returns the next buffer.
 */
export const onreadFields = ["kBuffer", "kBufferCb", "kBufferGen"].map((name) =>
  Object.getOwnPropertySymbols(new Socket()).find(({ description }) => description === name),
) as [symbol, symbol, symbol];

const [kBuffer, kBufferCb, kBufferGen] = onreadFields as [symbol | undefined, symbol, symbol];

type Insides = Socket & {
  readonly _handle: { useUserBuffer?(buffer: Buffer): void } | null;
  readonly [kBuffer: symbol]: unknown;
};

/** Whether the fields of a socket are those of `onread`, whose meaning is documented. */
export function keepsOnread(SocketClass = Socket): boolean {
  const buffer = () => Buffer.alloc(1);
  const callback = () => true;
  const socket = new SocketClass({ onread: { buffer, callback } });
  const { [kBuffer as symbol]: read, [kBufferCb]: called, [kBufferGen]: next } = socket as unknown as Insides;
  socket.destroy();
  return read === true && called === callback && next === buffer;
}

/** Undefined until Node was probed. */
let isSupported: boolean | undefined;

/**
 * Makes a connection read into `buffer` from now on. `read` is called with the number of bytes, and
 * returns false to pause the connection. Returns false where that is not possible: for TLS, and
 * with another version of Node.js. Bytes that have arrived before must be read first.
 */
export function readInto(socket: Socket, buffer: Buffer, read: (bytes: number) => boolean): boolean {
  isSupported ??= keepsOnread();
  const { _handle: handle, [kBuffer as symbol]: other } = socket as Insides;
  const isPlain = Object.getPrototypeOf(socket) === Socket.prototype;
  if (!isSupported || !isPlain || other != null || typeof handle?.useUserBuffer !== "function") return false;
  Object.assign(socket, { [kBuffer as symbol]: buffer, [kBufferCb]: read, [kBufferGen]: null });
  handle.useUserBuffer(buffer);
  return true;
}
