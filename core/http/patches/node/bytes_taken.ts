import type { Socket } from "node:net";

/**
 * Bytes of a connection that the system has really taken; undefined where nothing tells. Under TLS the connection below
 * is asked: its own counters know of a write only when the whole of it has gone.
 */
export function bytesTaken(socket: Socket): number | undefined {
  const { _parent: below, _handle: handle } = socket as unknown as SocketInsides;
  const counters = below?._handle ?? handle;
  return counters?.bytesWritten === undefined ? undefined : counters.bytesWritten - (counters.writeQueueSize ?? 0);
}

/** The connection that one with TLS was made of; undefined where nothing tells. */
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
