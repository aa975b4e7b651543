/**
 * Accesses the system handles behind Node's sockets: only these can be passed to another process,
 * or listened on again.
 */
import type { Server, Socket } from "node:net";

type Owner = { _handle: object | null };

/** Returns the handle of a listening server; null after it is closed. */
export const handleOf = (server: Server): object | null => (server as unknown as Partial<Owner>)._handle ?? null;

/** Returns an object that `listen` accepts as the server of a handle. */
export const serverOf = (handle: object): Server => ({ _handle: handle }) as unknown as Server;

/**
 * Takes the handle out of a connection and destroys the connection, which would otherwise close the
 * handle.
 */
export function takeHandle<H extends { readStop?(): void }>(socket: Socket): H | null {
  const owner = socket as unknown as { _handle: H | null };
  const { _handle: handle } = owner;
  if (handle == null) return null;
  handle.readStop?.();
  owner._handle = null;
  socket.destroy();
  return handle;
}
