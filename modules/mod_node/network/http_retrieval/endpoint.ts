/** Parses addresses of gateways: multiaddrs that end in HTTP. */
import { isIP, isIPv6 } from "node:net";
import type { Multiaddr } from "@multiformats/multiaddr";
import { transportOf } from "../swarm/multiaddr.ts";

export interface Endpoint {
  /** `https://host:port`, without a slash at the end. */
  readonly origin: string;
  /**
   * The origin. If the host name comes from `/sni`, it is followed by the IP address, because any
   * provider can claim that host.
   */
  readonly name: string;
  /** Name or address in lower case; an IPv6 address without brackets. */
  readonly host: string;
  /** The IP address to connect to, if the multiaddr contains one. */
  readonly ip: string | undefined;
}

const HOSTS: ReadonlySet<string> = new Set(["ip4", "ip6", "dns", "dns4", "dns6"]);
const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`);

/**
 * `/dns/host/tcp/443/tls/http`, `.../https`, `.../http`, with `/sni/name` after `/tls`; undefined
 * for any other address.
 */
export function endpointOf(address: Multiaddr): Endpoint | undefined {
  const [at, tcp, ...rest] = transportOf(address).getComponents();
  if (at?.value === undefined || !HOSTS.has(at.name) || tcp?.name !== "tcp") return undefined;
  const sni = rest[1]?.name === "sni" ? rest.splice(1, 1)[0]?.value : undefined;
  const names = rest.map(({ name }) => name).join("/");
  if (!/^(tls\/http|https|http)$/.test(names) || (sni !== undefined && names !== "tls/http")) return undefined;
  const ip = isIP(at.value) === 0 ? undefined : at.value;
  const host = (sni ?? at.value).toLowerCase();
  const shown = isIPv6(host) ? `[${host}]` : host;
  const origin = `${names === "http" ? "http" : "https"}://${shown}:${tcp.value}`;
  const isHost = isIP(host) === 0 ? isName(host, origin) : sni === undefined;
  return isHost
    ? { origin, name: ip === undefined || ip === host ? origin : `${origin} at ${ip}`, host, ip }
    : undefined;
}

/**
 * Excludes spellings that only URLs interpret as an IP address, such as 127.1 and 0x7f.1: they
 * would be connected to without a lookup.
 */
const isName = (host: string, origin: string): boolean => HOST_NAME.test(host) && URL.parse(origin)?.hostname === host;
