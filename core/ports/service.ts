/** A service that listens: who offers it, and where. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Config, convert } from "../config/index.ts";
import type { NetProvider, OptionType, OwnedItem } from "../types.ts";
import type { Open } from "./change.ts";

export type Provider = OwnedItem<NetProvider>;

/** One service by name: the providers that offer it, the last one served, and its listening sockets. */
export interface Service {
  readonly name: string;
  readonly providers: Set<Provider>;
  servers: Open[];
}

/** The provider that is served: the newest. */
export function current({ providers }: Service): Provider | undefined {
  return [...providers].at(-1);
}

export function close(service: Service): void {
  for (const { server } of service.servers) server.close();
  service.servers = [];
}

/** Resolves when the address is free; connections go on. */
export async function shut(service: Service, { server }: Open): Promise<void> {
  service.servers = service.servers.filter((open) => open.server !== server);
  server.close();
  // The socket is closed at the end of this turn, and the server only with its last connection.
  await nextTurn();
}

export function boundPort(open: Open | undefined): number {
  const address = open?.server.address();
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

/** The ports and addresses that a service is to listen on by its options, or by what its provider begins with. */
export function endpointsOf(
  config: Config,
  provider: Omit<NetProvider, "onconnect">,
): { ports: number[]; interfaces: string[] } {
  const read = (option: string, type: OptionType, fallback: unknown) =>
    convert({ type, describe: "" }, option, config.value(option) ?? fallback, config.directory);
  const ports = read(`${provider.name}_ports`, "ports", provider.default_ports ?? []) as number[];
  return {
    // Each 0 is a port of its own.
    ports: ports.filter((port, at) => port === 0 || ports.indexOf(port) === at),
    interfaces: read(`${provider.name}_interfaces`, "strings", provider.default_interfaces ?? ["*"]) as string[],
  };
}
