/** The host's side of the servers of one sandboxed process: checks ports, opens and closes them. */
import { isIP } from "node:net";
import type { Broker, CarriedEnds } from "./broker.ts";
import type { ModulePort, ModulePorts } from "./module_ports.ts";

/** Maximum number of servers of one process: a port may be opened on each address. */
const MAX_SERVERS = 64;

/** Without an address a module listens here, so that no other machine reaches it by accident. */
const LOOPBACK = "127.0.0.1";

/** A server of a sandbox, as the host reports it to the sandbox. */
export interface CarriedPort {
  readonly id: number;
  readonly address: string;
  readonly port: number;
}

export interface SandboxServersOptions {
  readonly module: string;
  readonly ports: ModulePorts;
  readonly broker: Broker;
  /** @throws the refusal of a port that is not granted */
  readonly check: (port: number) => void;
  /** Reports a connection of a server to the sandbox. */
  readonly accepted: (server: number, ends: CarriedEnds) => void;
}

export class SandboxServers {
  readonly #options: SandboxServersOptions;
  readonly #servers = new Map<number, Promise<ModulePort>>();
  #count = 0;
  #isClosed = false;

  constructor(options: SandboxServersOptions) {
    this.#options = options;
  }

  /**
   * Opens a port for the process. `address`: an IP address, `localhost`, or undefined for
   * 127.0.0.1.
   * @throws what `check` throws, and errors of the system with their codes
   */
  async listen(address: unknown, port: unknown): Promise<CarriedPort> {
    const host = address === undefined || address === "localhost" ? LOOPBACK : address;
    if (typeof host !== "string" || isIP(host) === 0) {
      throw new TypeError("The address to listen on must be an IP address or localhost");
    }
    if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > 65_535)
      throw new TypeError("The port to listen on must be a number from 1 to 65535");
    const { check, module, ports, broker, accepted } = this.#options;
    check(port as number);
    if (this.#servers.size >= MAX_SERVERS) {
      const message = `The module has ${MAX_SERVERS} servers, and may have no more`;
      throw Object.assign(new Error(message), { code: "EMFILE" });
    }
    const id = ++this.#count;
    const opened = ports.open(module, host, port as number, (socket) => {
      const ends = broker.accept(socket);
      if (ends !== undefined) accepted(id, ends);
    });
    this.#servers.set(id, opened);
    try {
      const found = await opened;
      // The process may have ended in the meantime.
      if (this.#isClosed) found.release();
      return { id, address: found.address, port: found.port };
    } catch (error) {
      this.#servers.delete(id);
      throw error;
    }
  }

  /** Closes a server; its connections stay open. An unknown id is ignored. */
  async unlisten(id: unknown): Promise<void> {
    const server = this.#servers.get(id as number);
    this.#servers.delete(id as number);
    (await server?.catch(() => undefined))?.release();
  }

  /** Closes all servers of the process. */
  close(): void {
    this.#isClosed = true;
    for (const id of this.#servers.keys()) void this.unlisten(id);
  }
}
