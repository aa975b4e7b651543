/** Sockets that listened before this host began: systemd, another process, or a host before it in this process hands them over. */
import { createServer, type Server, type Socket } from "node:net";
import type { NetEndpoint } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { listen, listenOn } from "./listen.ts";
import type { Place } from "./places.ts";

/** A listening socket that this process was started with. */
export interface GivenSocket {
  readonly fd: number;
  /** That of a service ("http", "https"): it takes the place of the service's ports. Others go by their address. */
  readonly name: string;
}

interface AskedPort {
  readonly address: string;
  readonly port: number;
  /** By a provider itself. */
  readonly isEndpoint: boolean;
}

/** A port of a host that has stopped, and whose place another one takes. */
export interface HeldPort {
  /** Of the service. */
  readonly name: string;
  /** What an option, or a provider itself, asked for; undefined of one that took the place of the service's ports. */
  readonly asked: AskedPort | undefined;
  /** Its connections are paused: nothing has been read of them. */
  readonly server: Server;
  /** Connections that nobody serves yet. */
  readonly waiting: Socket[];
}

export type InheritedSocket = GivenSocket | HeldPort;

interface Adopted {
  readonly from: InheritedSocket;
  readonly server: Server;
  /** Connections that came before anybody served them. */
  readonly waiting: Socket[];
  serve: ((socket: Socket) => void) | undefined;
}

const isHeld = (socket: InheritedSocket): socket is HeldPort => "server" in socket;

export class Inherited {
  readonly #sockets: readonly InheritedSocket[];
  #adopted: Adopted[] = [];

  constructor(sockets: readonly InheritedSocket[]) {
    this.#sockets = sockets;
  }

  /** There are some, or were. */
  get isUsed(): boolean {
    return this.#sockets.length > 0;
  }

  /** Accepts their connections from now on. Gives a line for each that is no listening socket. */
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
        await (isHeld(from) ? listenOn(server, from.server) : listen(server, { fd: from.fd }));
        this.#adopted.push(adopted);
      } catch (error) {
        const which = isHeld(from) ? "" : ` (descriptor ${from.fd})`;
        faults.push(`The inherited socket ${from.name}${which} cannot be used: ${reasonOf(error)}`);
      }
    }
    return faults;
  }

  /** All that have the name of a service; `serve` gets their connections. */
  named(service: string, serve: (socket: Socket) => void): Server[] {
    return this.#take(({ from }) => from.name === service && !(isHeld(from) && from.asked !== undefined), serve);
  }

  /** One that was opened for the same place of the service, or is bound to what an option asks for. */
  bound(service: string, { address, port }: Place, serve: (socket: Socket) => void): Server | undefined {
    const addresses = address === "*" ? ["::", "0.0.0.0"] : [address];
    const isAsked = ({ from, server }: Adopted) => {
      if (isHeld(from)) return isOf(from, service, { address, port }, false);
      const at = server.address();
      return port !== 0 && at !== null && typeof at === "object" && at.port === port && addresses.includes(at.address);
    };
    return this.#takeOne(isAsked, serve);
  }

  /** One that was opened for the same endpoint of the service. */
  endpoint(service: string, endpoint: NetEndpoint, serve: (socket: Socket) => void): Server | undefined {
    if ("path" in endpoint) return undefined;
    return this.#takeOne(({ from }) => isHeld(from) && isOf(from, service, endpoint, true), serve);
  }

  /** Closes those that nobody serves; a line for each. */
  close(): string[] {
    return this.#adopted.splice(0).map(({ from, server, waiting }) => {
      const at = server.address();
      for (const socket of [...waiting, ...(isHeld(from) ? from.waiting.splice(0) : [])]) socket.destroy();
      server.close();
      const place = at !== null && typeof at === "object" ? `port ${at.port} of ${at.address}` : String(at);
      const why = isHeld(from)
        ? "the configuration asks for it no more"
        : "no service has its name, and no option asks for its address";
      return `The inherited socket ${from.name} (${place}) is closed: ${why}`;
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
      if (isHeld(adopted.from)) for (const socket of adopted.from.waiting.splice(0)) serve(socket.resume());
    }
    return taken.map(({ server }) => server);
  }
}

function isOf(
  { name, asked }: HeldPort,
  service: string,
  { address, port }: Pick<AskedPort, "address" | "port">,
  isEndpoint: boolean,
): boolean {
  return name === service && asked?.address === address && asked.port === port && asked.isEndpoint === isEndpoint;
}
