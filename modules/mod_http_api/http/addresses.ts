/** Where the API listens, as multiaddrs say it and as the host's options do. */
import { isIPv6 } from "node:net";
import type { ListeningPort, Module, NetEndpoint } from "../../../core/types.ts";

/** Text or a list of it, as the configuration has it; an empty text is nothing. */
export const addressList = (value: string | readonly string[] | null): readonly string[] =>
  typeof value === "string" ? [value].filter((each) => each !== "") : (value ?? []);

/** Undefined for an address that says something else than a TCP port or a Unix socket. */
export function endpointOf(address: string): NetEndpoint | undefined {
  const [, path] = /^\/unix(\/.+)$/.exec(address) ?? [];
  if (path !== undefined) return { path };
  const [, name, port] = /^\/(?:ip4|ip6|dns|dns4|dns6)\/([^/]+)\/tcp\/(\d{1,5})$/.exec(address) ?? [];
  return name === undefined || Number(port) > 65_535 ? undefined : { address: name, port: Number(port) };
}

/** The same place with the port that it really has. */
export const withPort = (address: string, port: number): string => address.replace(/\d+$/, String(port));

/** For clients on this machine: none of them can call a wildcard. */
export function reachable(address: string): string {
  const endpoint = endpointOf(address);
  const isWildcard = endpoint !== undefined && "port" in endpoint && ["0.0.0.0", "::"].includes(endpoint.address);
  return isWildcard ? multiaddrOf(endpoint) : address;
}

/** As this machine reaches it. */
export function multiaddrOf({ address, port }: Pick<ListeningPort, "address" | "port">): string {
  if (isIPv6(address) && address !== "::") return `/ip6/${address}/tcp/${port}`;
  return `/ip4/${["::", "*", "0.0.0.0"].includes(address) ? "127.0.0.1" : address}/tcp/${port}`;
}

/** Where the host itself listens for plain HTTP, as far as its options tell. */
export function ownEndpoints(module: Module): { readonly address: string; readonly port: number }[] {
  const ports = module.get_option<readonly unknown[]>("http_ports") ?? [5280];
  const interfaces = module.get_option_array("http_interfaces") ?? ["127.0.0.1"];
  return ports
    .filter((port) => typeof port === "number")
    .flatMap((port) => interfaces.map((address) => ({ address, port })));
}
