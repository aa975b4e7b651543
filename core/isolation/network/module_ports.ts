/** The ports that the host opens for sandboxed modules. */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { listen } from "../../ports/listen.ts";

/** Called with each connection to a port. */
type ConnectionListener = (socket: Socket) => void;

/** A port that is open for one process of a module. */
export interface ModulePort {
  readonly address: string;
  readonly port: number;
  /** Closes the port, unless another process of the module uses it as well. */
  release(): void;
}

interface OpenPort {
  readonly server: Server;
  readonly listening: Promise<void>;
  /** One for each process that listens. The last one gets the connections. */
  readonly listeners: Set<ConnectionListener>;
  /** The number of processes that listen or are about to. */
  users: number;
}

/**
 * While a module is reloaded, two of its processes listen on the same port. They share one socket,
 * and the newest process gets the connections, so that none is refused in between.
 */
export class ModulePorts {
  readonly #open = new Map<string, OpenPort>();

  /**
   * Opens a port of an address for a process of a module.
   * @throws errors of the system with their codes: EADDRINUSE, EADDRNOTAVAIL, EACCES
   */
  async open(module: string, address: string, port: number, listener: ConnectionListener): Promise<ModulePort> {
    const key = JSON.stringify([module, address, port]);
    const open = this.#open.get(key) ?? this.#listen(key, address, port);
    open.users += 1;
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      open.listeners.delete(listener);
      open.users -= 1;
      if (open.users > 0) return;
      this.#open.delete(key);
      open.server.close();
    };
    try {
      await open.listening;
    } catch (error) {
      release();
      throw error;
    }
    // The process gets the reply with the number of its server before the first connection.
    open.listeners.add(listener);
    const bound = open.server.address() as AddressInfo | null;
    return { address: bound?.address ?? address, port: bound?.port ?? port, release };
  }

  #listen(key: string, address: string, port: number): OpenPort {
    const listeners = new Set<ConnectionListener>();
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const listener = [...listeners].at(-1);
      if (listener === undefined) socket.destroy();
      else listener(socket);
    });
    const open = { server, listening: listen(server, { host: address, port }), listeners, users: 0 };
    this.#open.set(key, open);
    return open;
  }
}
