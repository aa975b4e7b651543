/**
 * Gives accepted sockets the option `onread`, which Node.js only supports for dialled sockets.
 * Without it, data over connections that peers have opened took 50 % more CPU time.
 */
import { type OnReadOpts, Socket } from "node:net";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/tcp",
  version: "11.0.28",
  without: "data over connections that peers have opened takes more CPU time",
};

const onread = { buffer: () => new Uint8Array(1), callback: () => true };
const dialled = new Socket({ onread });

/** Returns the symbol under which a socket with the option `onread` stores a value. */
const symbolOf = (name: string, value: unknown) =>
  Object.getOwnPropertySymbols(dialled).find(
    (symbol) => symbol.description === name && Reflect.get(dialled, symbol) === value,
  );

/** The symbol of the buffer to read into; of a function that returns it, the value is true. */
const kBuffer = symbolOf("kBuffer", true);
/** The symbol of the callback of each read. */
const kBufferCb = symbolOf("kBufferCb", onread.callback);
/** The symbol of the function that returns the next buffer. */
const kBufferGen = symbolOf("kBufferGen", onread.buffer);

interface SocketInternals {
  readonly _handle?: { useUserBuffer?(buffer: Uint8Array): void } | null;
  /** Null if Node.js allocates the buffers. */
  [symbol: symbol]: unknown;
}

/**
 * Changes a socket unless it reads in this way already. @param reads creates the options for this
 * socket only
 */
export function readAsDialled(socket: Socket, reads: () => OnReadOpts, notices: PatchNotices): void {
  const internals = socket as Socket & SocketInternals;
  const { _handle: handle } = internals;
  if (handle === null) return;
  const parts = { kBuffer, kBufferCb, kBufferGen, "socket._handle.useUserBuffer": handle?.useUserBuffer };
  if (!notices.isApplicable(patch, parts) || internals[kBuffer as symbol] !== null) return;
  const { buffer, callback } = reads();
  const next = typeof buffer === "function" ? buffer : () => buffer;
  const first = next();
  Object.assign(internals, {
    [kBuffer as symbol]: first,
    [kBufferCb as symbol]: callback,
    [kBufferGen as symbol]: next,
  });
  handle?.useUserBuffer?.(first);
}
