/**
 * Listening sockets that the processes of one server share: the primary opens them, and the others
 * listen on them as well.
 */
import { createServer, type Server, type Socket } from "node:net";
import { serverOf } from "../util/patches/node/handles.ts";
import type { Open } from "./change.ts";
import type { PausedPort } from "./inherited.ts";
import { listenOn } from "./listen.ts";
import type { Service } from "./service.ts";

/** An open port, and the address that it was opened for. */
export interface SharedPort extends Pick<PausedPort, "name" | "requested"> {
  /** Identifies the port of the service. */
  readonly key: string;
  readonly server: Server;
}

/** The sockets that the primary has open for a service. */
export interface SharedSockets {
  readonly keys: readonly string[];
  /** Sockets that are new for this process. */
  readonly added: readonly { readonly key: string; readonly handle: object }[];
}

/** The ports of a server whose primary is another process. */
export interface SharedPorts {
  of(service: string, known: readonly string[]): Promise<SharedSockets>;
  /** Calls `changed` with the name of each service whose sockets have changed. */
  onChange(changed: (service: string) => void): void;
}

/**
 * Returns the ports of a service that other processes may share, without those that its provider
 * opens itself.
 */
export function shareablePorts({ name, servers }: Service): SharedPort[] {
  return servers.flatMap(({ server, bindAddress, endpoint }) => {
    const bound = server.address();
    if (endpoint !== undefined || bound === null || typeof bound === "string") return [];
    const requested = bindAddress && { address: bindAddress.address, port: bindAddress.port, isEndpoint: false };
    return [{ key: `${name} ${bound.address} ${bound.port}`, name, requested, server }];
  });
}

/**
 * Starts listening on newly shared sockets of a service, and closes those that are no longer
 * shared.
 */
export async function listenOnShared(
  shared: SharedPorts,
  service: Service,
  serve: (socket: Socket) => void,
  take: (open: Open) => void,
): Promise<void> {
  const known = service.servers.flatMap(({ key }) => (key === undefined ? [] : [key]));
  const { keys, added } = await shared.of(service.name, known);
  for (const open of service.servers.filter(({ key }) => key !== undefined && !keys.includes(key))) {
    service.servers = service.servers.filter((each) => each !== open);
    open.server.close();
  }
  for (const { key, handle } of added) {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, serve);
    await listenOn(server, serverOf(handle));
    take({ server, bindAddress: undefined, key });
  }
}
