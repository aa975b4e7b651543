/**
 * Finds the ports in the options that cannot be opened, by opening each. No module needs to be
 * loaded for that.
 */
import { createServer, isIP, type Server } from "node:net";
import type { Config } from "../config/index.ts";
import type { ListeningPort } from "../types.ts";
import type { ModhostError } from "../util/errors.ts";
import { lacksAddress, listenAnywhere } from "./listen.ts";
import { endpointsOf, isOptional } from "./service.ts";

export interface RefusedPort {
  /**
   * PORT_TAKEN or PORT_FORBIDDEN; PORT_UNAVAILABLE if the options contradict each other, or name an
   * address that this machine does not have.
   */
  readonly error: ModhostError;
  /** Whether a server starts without the port. */
  readonly isOptional: boolean;
}

interface FailedPort {
  readonly service: string;
  readonly address: string;
  readonly port: number;
  readonly error: unknown;
}

/** `before` are the ports of earlier options, whether or not they could be opened. */
export async function* refusedPorts(
  config: Config,
  failure: (failed: FailedPort, before: readonly ListeningPort[]) => ModhostError,
): AsyncGenerator<RefusedPort, void, undefined> {
  const before: ListeningPort[] = [];
  // The servers stay open until the end, because one may block the address of another.
  const servers: Server[] = [];
  try {
    for (const [option, { type }] of config.declarations()) {
      const [, service, plural = ""] = /^(.+)_port(s?)$/.exec(option) ?? [];
      if (service === undefined || type !== `port${plural}`) continue;
      const { ports, interfaces } = endpointsOf(config, { name: service });
      for (const port of ports.filter((port) => port !== 0)) {
        const lacking: FailedPort[] = [];
        for (const address of interfaces) {
          const server = createServer((socket) => socket.destroy());
          servers.push(server);
          const error = await listenAnywhere(server, address, port).then(
            () => undefined,
            (error: unknown) => error,
          );
          const failed = { service, address, port, error };
          if (lacksAddress(error, address)) lacking.push(failed);
          else if (error !== undefined) {
            yield { error: failure(failed, before), isOptional: isOptional(config, service) };
          }
          const bound = server.address();
          const own = typeof bound === "object" ? bound?.address : undefined;
          before.push({ service, scheme: undefined, address: own ?? (address === "*" ? "::" : address), port });
        }
        const [first] = lacking;
        if (first !== undefined && lacking.length === interfaces.length)
          yield { error: failure(first, before), isOptional: isOptional(config, service) };
      }
    }
  } finally {
    for (const server of servers) server.close();
  }
}

/** Returns true if a socket at one address blocks a socket at the other, with the same port. */
export function areInTheWay(one: string, other: string): boolean {
  const isAll = (address: string) => address === "*" || address === "::";
  const isAllOf4 = (address: string) => address === "0.0.0.0";
  if (one === other || isAll(one) || isAll(other)) return true;
  return (isAllOf4(one) && isIP(other) === 4) || (isAllOf4(other) && isIP(one) === 4);
}
