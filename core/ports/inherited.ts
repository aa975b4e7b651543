/** Sockets that listened before this process began: systemd, or whoever has started it, hands them over. */
import { createServer, type Server, type Socket } from "node:net";
import { reasonOf } from "../util/errors.ts";
import { listen } from "./listen.ts";
import type { Place } from "./places.ts";

/** A listening socket that this process was started with. */
export interface InheritedSocket {
  readonly fd: number;
  /** That of a service ("http", "https"): it takes the place of the service's ports. Others go by their address. */
  readonly name: string;
}

interface Adopted {
  readonly name: string;
  readonly server: Server;
  /** Connections that came before anybody served them. */
  readonly waiting: Socket[];
  serve: ((socket: Socket) => void) | undefined;
}

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
    for (const { fd, name } of this.#sockets) {
      const waiting: Socket[] = [];
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        if (adopted.serve === undefined) waiting.push(socket);
        else adopted.serve(socket);
      });
      const adopted: Adopted = { name, server, waiting, serve: undefined };
      try {
        await listen(server, { fd });
        this.#adopted.push(adopted);
      } catch (error) {
        faults.push(`The inherited socket ${name} (descriptor ${fd}) cannot be used: ${reasonOf(error)}`);
      }
    }
    return faults;
  }

  /** All that have the name of a service; `serve` gets their connections. */
  named(service: string, serve: (socket: Socket) => void): Server[] {
    return this.#take(({ name }) => name === service, serve);
  }

  /** One that is bound to what an option asks for. */
  bound({ address, port }: Place, serve: (socket: Socket) => void): Server | undefined {
    const addresses = address === "*" ? ["::", "0.0.0.0"] : [address];
    const isAsked = ({ server }: Adopted) => {
      const at = server.address();
      return at !== null && typeof at === "object" && at.port === port && addresses.includes(at.address);
    };
    const [first] = port === 0 ? [] : this.#adopted.filter(isAsked);
    return first && this.#take((adopted) => adopted === first, serve)[0];
  }

  /** Closes those that nobody serves; a line for each. */
  close(): string[] {
    return this.#adopted.splice(0).map(({ name, server, waiting }) => {
      const at = server.address();
      for (const socket of waiting) socket.destroy();
      server.close();
      const place = at !== null && typeof at === "object" ? `port ${at.port} of ${at.address}` : String(at);
      return `The inherited socket ${name} (${place}) is closed: no service has its name, and no option asks for its address`;
    });
  }

  #take(isWanted: (adopted: Adopted) => boolean, serve: (socket: Socket) => void): Server[] {
    const taken = this.#adopted.filter(isWanted);
    this.#adopted = this.#adopted.filter((adopted) => !taken.includes(adopted));
    for (const adopted of taken) {
      adopted.serve = serve;
      for (const socket of adopted.waiting.splice(0)) serve(socket);
    }
    return taken.map(({ server }) => server);
  }
}
