import type { Socket } from "node:net";

/**
 * Returns the number of bytes of a connection that the system has taken; undefined when Node does
 * not expose it. Under TLS it reads the counters of the connection below, because those of TLS
 * count a write only when all of it has been sent.
 */
export function bytesTaken(socket: Socket): number | undefined {
  const { _parent: below, _handle: handle } = socket as unknown as SocketInsides;
  const counters = below?._handle ?? handle;
  return counters?.bytesWritten === undefined ? undefined : counters.bytesWritten - (counters.writeQueueSize ?? 0);
}

/** Returns the connection below a TLS connection; undefined when Node does not expose it. */
export const connectionBelow = (socket: Socket): Socket | undefined =>
  (socket as { readonly _parent?: Socket })._parent;

interface SocketInsides {
  readonly _handle?: HandleCounters | null;
  readonly _parent?: SocketInsides | null;
}

interface HandleCounters {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}
