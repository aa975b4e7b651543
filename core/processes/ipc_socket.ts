/**
 * The socket of the system at which a process takes the requests that other processes of the server
 * forward.
 */
import { rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { admit, innerAddress } from "../relay/inner_request.ts";
import { socketOf, type TakeConnection } from "../relay/ipc_channel.ts";
import type { IpcSocketAddress } from "./messages.ts";
import type { RoleDeps } from "./role.ts";

export class IpcSocket {
  readonly address: IpcSocketAddress;
  readonly #deps: RoleDeps;
  /** Connections of the other processes. */
  readonly #inner = new WeakSet<object>();
  #server: Server | undefined;

  constructor(deps: RoleDeps) {
    this.#deps = deps;
    const { folder, number } = deps.begin;
    this.address = { number, ...innerAddress(folder, `${number}-${process.pid}`) };
  }

  async open(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.#inner.add(socket);
      this.#serve("http", socket);
    });
    this.#server = server;
    await new Promise<void>((resolve, reject) => void server.once("error", reject).listen(this.address.path, resolve));
    this.#deps.supervisor.notify("ipcSocket", this.address);
  }

  close(): void {
    this.#server?.close();
    rmSync(this.address.path, { force: true });
  }

  /** Whether another process has forwarded the request. */
  isInner({ socket }: { readonly socket: object }): boolean {
    return this.#inner.has(socket);
  }

  /** Reads who the client of a forwarded request is. */
  arrived(request: IncomingMessage): void {
    if (this.isInner(request)) admit(request, this.address.token);
  }

  /** Serves a connection of which another process has read `head`. */
  readonly takeConnection: TakeConnection = (connection) => {
    const socket = socketOf(connection);
    // The process that has read the head has routed the connection here. It is not routed a second
    // time.
    this.#inner.add(socket);
    this.#serve(connection.service, socket);
    this.#inner.delete(socket);
  };

  #serve(service: string, socket: Socket): void {
    socket.on("error", () => undefined);
    try {
      this.#deps.host()?.connect(service, socket);
    } catch {
      socket.destroy(); // The module of the service has been unloaded.
    }
  }
}
