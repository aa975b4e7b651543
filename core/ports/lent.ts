/** Listening sockets that several processes of one server have in common: one opens them, and the others take them over. */
import { createServer, type Server, type Socket } from "node:net";
import type { Open } from "./change.ts";
import type { HeldPort } from "./inherited.ts";
import { listenOn } from "./listen.ts";
import type { Service } from "./service.ts";

/** A listening socket of the system, at which nobody of this process listens yet. */
export type ListeningHandle = object;

/** A port that is open, and what it was opened for. */
export interface SharedPort extends Pick<HeldPort, "name" | "asked"> {
  /** The same for the same port of the same service. */
  readonly key: string;
  readonly server: Server;
}

/** What another process has open for a service. */
export interface LentSockets {
  readonly keys: readonly string[];
  /** Those of them that were not known. */
  readonly added: readonly { readonly key: string; readonly handle: ListeningHandle }[];
}

/** Another process opens the ports. */
export interface LentPorts {
  of(service: string, known: readonly string[]): Promise<LentSockets>;
  /** Hears of services whose sockets have become others. */
  follow(changed: (service: string) => void): void;
}

/** A server that stands for a socket of the system where one is to be listened on. */
export function serverOf(handle: ListeningHandle): Server {
  return { _handle: handle } as unknown as Server;
}

/** All ports of a service but those that its provider has for itself. */
export function sharedOf({ name, servers }: Service): SharedPort[] {
  return servers.flatMap(({ server, place, endpoint }) => {
    const bound = server.address();
    if (endpoint !== undefined || bound === null || typeof bound === "string") return [];
    const asked = place && { address: place.address, port: place.port, isEndpoint: false };
    return [{ key: `${name} ${bound.address} ${bound.port}`, name, asked, server }];
  });
}

/** Listens on what is lent for a service, and no more on what is not any longer. */
export async function borrow(
  lent: LentPorts,
  service: Service,
  serve: (socket: Socket) => void,
  take: (open: Open) => void,
): Promise<void> {
  const known = service.servers.flatMap(({ key }) => (key === undefined ? [] : [key]));
  const { keys, added } = await lent.of(service.name, known);
  for (const open of service.servers.filter(({ key }) => key !== undefined && !keys.includes(key))) {
    service.servers = service.servers.filter((each) => each !== open);
    open.server.close();
  }
  for (const { key, handle } of added) {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, serve);
    await listenOn(server, serverOf(handle));
    take({ server, place: undefined, key });
  }
}
