/**
 * Sockets that were listening before this host started: systemd, another process, or a previous
 * host in this process passes them on.
 */
import { createServer, type Server, type Socket } from "node:net";
import type { NetEndpoint } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import type { BindAddress } from "./bind_addresses.ts";
import { listen, listenOn } from "./listen.ts";

/** A listening socket that this process was started with. */
export interface GivenSocket {
  readonly fd: number;
  /**
   * The name of a service ("http", "https"), whose ports the socket replaces. Sockets with other
   * names are assigned by their address.
   */
  readonly name: string;
}

interface RequestedPort {
  readonly address: string;
  readonly port: number;
  /** Whether a provider itself requested the port. */
  readonly isEndpoint: boolean;
}

/** A port of a stopped host, for the host that takes over. */
export interface PausedPort {
  /** The name of the service. */
  readonly name: string;
  /**
   * The address that an option or a provider requested; undefined for a socket that replaced the
   * service's ports.
   */
  readonly requested: RequestedPort | undefined;
  /** Connections that this server accepts are paused: nothing has been read from them. */
  readonly server: Server;
  /** Connections that no host serves yet. */
  readonly waiting: Socket[];
}

export type InheritedSocket = GivenSocket | PausedPort;

interface Adopted {
  readonly from: InheritedSocket;
  readonly server: Server;
  /** Connections that arrived before a service was assigned. */
  readonly waiting: Socket[];
  serve: ((socket: Socket) => void) | undefined;
}

const isPaused = (socket: InheritedSocket): socket is PausedPort => "server" in socket;

export class Inherited {
  readonly #sockets: readonly InheritedSocket[];
  #adopted: Adopted[] = [];
  readonly #given = new WeakSet<Server>();

  constructor(sockets: readonly InheritedSocket[]) {
    this.#sockets = sockets;
  }

  /** Whether any sockets were inherited. */
  get isUsed(): boolean {
    return this.#sockets.length > 0;
  }

  /** Returns true if the process that started this one may have the server's socket open, too. */
  isGiven(server: Server): boolean {
    return this.#given.has(server);
  }

  /**
   * Starts to accept connections on the inherited sockets. Returns one line for each that cannot be
   * used.
   */
  async adopt(): Promise<string[]> {
    const faults: string[] = [];
    for (const from of this.#sockets) {
      const waiting: Socket[] = [];
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        if (adopted.serve === undefined) waiting.push(socket);
        else adopted.serve(socket);
      });
      const adopted: Adopted = { from, server, waiting, serve: undefined };
      try {
        await (isPaused(from) ? listenOn(server, from.server) : listen(server, { fd: from.fd }));
        if (!isPaused(from)) this.#given.add(server);
        this.#adopted.push(adopted);
      } catch (error) {
        const which = isPaused(from) ? "" : ` (descriptor ${from.fd})`;
        faults.push(`The inherited socket ${from.name}${which} cannot be used: ${reasonOf(error)}`);
      }
    }
    return faults;
  }

  /** Returns all servers with the name of a service; `serve` receives their connections. */
  named(service: string, serve: (socket: Socket) => void): Server[] {
    return this.#take(({ from }) => from.name === service && !(isPaused(from) && from.requested !== undefined), serve);
  }

  /**
   * Returns a server that was opened for the same address of the service, or is bound to the
   * address of an option.
   */
  bound(service: string, { address, port }: BindAddress, serve: (socket: Socket) => void): Server | undefined {
    const addresses = address === "*" ? ["::", "0.0.0.0"] : [address];
    const isRequested = ({ from, server }: Adopted) => {
      if (isPaused(from)) return isOf(from, service, { address, port }, false);
      const at = server.address();
      return port !== 0 && at !== null && typeof at === "object" && at.port === port && addresses.includes(at.address);
    };
    return this.#takeOne(isRequested, serve);
  }

  /** Returns a server that was opened for the same endpoint of the service. */
  endpoint(service: string, endpoint: NetEndpoint, serve: (socket: Socket) => void): Server | undefined {
    if ("path" in endpoint) return undefined;
    return this.#takeOne(({ from }) => isPaused(from) && isOf(from, service, endpoint, true), serve);
  }

  /** Closes the servers that no service uses; returns one line for each. */
  close(): string[] {
    return this.#adopted.splice(0).map(({ from, server, waiting }) => {
      const at = server.address();
      for (const socket of [...waiting, ...(isPaused(from) ? from.waiting.splice(0) : [])]) socket.destroy();
      server.close();
      const address = at !== null && typeof at === "object" ? `port ${at.port} of ${at.address}` : String(at);
      const why = isPaused(from)
        ? "the configuration no longer uses it"
        : "no service has its name, and no option uses its address";
      return `The inherited socket ${from.name} (${address}) is closed: ${why}`;
    });
  }

  #takeOne(isWanted: (adopted: Adopted) => boolean, serve: (socket: Socket) => void): Server | undefined {
    const first = this.#adopted.find(isWanted);
    return first && this.#take((adopted) => adopted === first, serve)[0];
  }

  #take(isWanted: (adopted: Adopted) => boolean, serve: (socket: Socket) => void): Server[] {
    const taken = this.#adopted.filter(isWanted);
    this.#adopted = this.#adopted.filter((adopted) => !taken.includes(adopted));
    for (const adopted of taken) {
      adopted.serve = serve;
      for (const socket of adopted.waiting.splice(0)) serve(socket);
      if (isPaused(adopted.from)) for (const socket of adopted.from.waiting.splice(0)) serve(socket.resume());
    }
    return taken.map(({ server }) => server);
  }
}

function isOf(
  { name, requested }: PausedPort,
  service: string,
  { address, port }: Pick<RequestedPort, "address" | "port">,
  isEndpoint: boolean,
): boolean {
  return (
    name === service && requested?.address === address && requested.port === port && requested.isEndpoint === isEndpoint
  );
}
