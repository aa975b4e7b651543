/** Converts listen addresses between multiaddrs and endpoints of the host. */
import { isIPv6 } from "node:net";
import type { ListeningPort, Module, NetEndpoint } from "../../../core/types.ts";

/**
 * Normalizes a config value that is a string or a list of strings. An empty string means no
 * address.
 */
export const addressList = (value: string | readonly string[] | null): readonly string[] =>
  typeof value === "string" ? [value].filter((each) => each !== "") : (value ?? []);

/** Returns undefined for an address that is neither a TCP port nor a Unix socket. */
export function endpointOf(address: string): NetEndpoint | undefined {
  const [, path] = /^\/unix(\/.+)$/.exec(address) ?? [];
  if (path !== undefined) return { path };
  const [, name, port] = /^\/(?:ip4|ip6|dns|dns4|dns6)\/([^/]+)\/tcp\/(\d{1,5})$/.exec(address) ?? [];
  return name === undefined || Number(port) > 65_535 ? undefined : { address: name, port: Number(port) };
}

/** Replaces the port by the one that was actually bound, since the configured port may be 0. */
export const withPort = (address: string, port: number): string => address.replace(/\d+$/, String(port));

/**
 * Returns the address for clients on this machine: a wildcard address becomes a loopback address.
 */
export function reachable(address: string): string {
  const endpoint = endpointOf(address);
  const isWildcard = endpoint !== undefined && "port" in endpoint && ["0.0.0.0", "::"].includes(endpoint.address);
  return isWildcard ? multiaddrOf(endpoint) : address;
}

/** Returns the multiaddr for clients on this machine; a wildcard address becomes 127.0.0.1. */
export function multiaddrOf({ address, port }: Pick<ListeningPort, "address" | "port">): string {
  if (isIPv6(address) && address !== "::") return `/ip6/${address}/tcp/${port}`;
  return `/ip4/${["::", "*", "0.0.0.0"].includes(address) ? "127.0.0.1" : address}/tcp/${port}`;
}

/** Returns the host's own plain HTTP endpoints, according to its options. */
export function ownEndpoints(module: Module): { readonly address: string; readonly port: number }[] {
  const ports = module.get_option<readonly unknown[]>("http_ports") ?? [5280];
  const interfaces = module.get_option_array("http_interfaces") ?? ["127.0.0.1"];
  return ports
    .filter((port) => typeof port === "number")
    .flatMap((port) => interfaces.map((address) => ({ address, port })));
}

/** Returns the URL of a listen address; undefined for a Unix socket. */
export function urlOf(address: string): string | undefined {
  const endpoint = endpointOf(address);
  if (endpoint === undefined || "path" in endpoint) return undefined;
  const { address: host, port } = endpoint;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
