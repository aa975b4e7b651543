/** A listening service: its providers and its sockets. */
import { isDeepStrictEqual } from "node:util";
import { type Config, convert } from "../config/index.ts";
import type { NetProvider, OptionType, OwnedItem } from "../types.ts";
import type { Open } from "./change.ts";
import { closeAccepting } from "./last_connections.ts";

export type Provider = OwnedItem<NetProvider>;

/** A service by name: its providers, of which the last one is used, and its listening sockets. */
export interface Service {
  readonly name: string;
  readonly providers: Set<Provider>;
  servers: Open[];
}

/** Returns the provider that is used: the newest. */
export function current({ providers }: Service): Provider | undefined {
  return [...providers].at(-1);
}

/** Closes the sockets of a service without providers. */
export function close(service: Service): void {
  for (const { server } of service.servers.splice(0)) server.close();
}

/** Resolves when no socket of the service is listening; connections stay open. */
export async function shutAll(service: Service): Promise<void> {
  await Promise.all(service.servers.map((open) => shut(service, open)));
}

/** Resolves when the address is free; connections stay open. */
export async function shut(service: Service, { server, isShared = false }: Open): Promise<void> {
  service.servers = service.servers.filter((open) => open.server !== server);
  await closeAccepting(server, { isShared });
}

export function boundPort(open: Open | undefined): number {
  const address = open?.server.address();
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

/** Returns the option with the only port of a service; undefined if its ports are a list. */
function singlePort(config: Config, name: string): string | undefined {
  const option = `${name}_port`;
  return config.declarations().get(option)?.type === "port" ? option : undefined;
}

/** Returns the option with the port or the ports of a service. */
export function portOption(config: Config, name: string): string {
  return singlePort(config, name) ?? `${name}_ports`;
}

/**
 * Returns true if a server starts without this service when its port cannot be opened: it has a
 * single port, with its default value.
 */
export function isOptional(config: Config, name: string): boolean {
  const option = singlePort(config, name);
  return option !== undefined && config.source(option) === "default";
}

/**
 * Returns true if anything may be served over TLS: `https_ports` is not empty, or an option such as
 * `admin_https_port` is set.
 */
export function servesHttps(config: Config): boolean {
  if (!isDeepStrictEqual(config.value("https_ports"), [])) return true;
  const single = [...config.declarations()].filter(
    ([name, { type }]) => type === "port" && name.endsWith("_https_port"),
  );
  return single.some(([name]) => Number(config.value(name)) > 0);
}

/**
 * Returns the ports and interfaces of a service by its options, or by the defaults of its provider.
 */
export function endpointsOf(
  config: Config,
  provider: Omit<NetProvider, "onconnect">,
): { ports: number[]; interfaces: string[] } {
  const { name, default_ports = [], default_interfaces = ["*"] } = provider;
  const read = (option: string, type: OptionType, fallback: unknown) =>
    convert({ type, describe: "" }, option, config.value(option) ?? fallback, config.directory);
  const single = singlePort(config, name);
  const ports =
    single === undefined
      ? (read(`${name}_ports`, "ports", default_ports) as number[])
      : [read(single, "port", 0) as number].filter((port) => port !== 0);
  return {
    // Each 0 is a separate port.
    ports: ports.filter((port, at) => port === 0 || ports.indexOf(port) === at),
    interfaces: read(`${name}_interfaces`, "strings", default_interfaces) as string[],
  };
}
