/** Who may read the figures. */
import { BlockList, isIP } from "node:net";
import {
  findToken,
  isForwarded,
  isLocalName,
  type KnownToken,
  readAuthorization,
  readTokens,
  requestedHost,
} from "../../core/http/index.ts";
import { ModhostError } from "../../core/index.ts";
import type { HttpRequest, Module, TokenRefusal } from "../../core/types.ts";

export type Access = (request: HttpRequest) => TokenRefusal | undefined;

const forbidden = (message: string): TokenRefusal => ({ status: 403, message, headers: {} });

/**
 * Tells why a request is refused; undefined where it may read. By the options: a token opens to everybody, an address to
 * whoever asks from there, and through no proxy. A caller of this machine may be a browser that was led here: it has to name the
 * host as no foreign page can.
 * @throws {ModhostError} OPTION_INVALID
 */
export function accessOf(module: Module): Access {
  const addresses = addressList(module.get_option_array("openmetrics_allow_ips") ?? []);
  const hosts = new Set((module.get_option_array("openmetrics_hosts") ?? []).map((name) => name.toLowerCase()));
  const tokens: readonly KnownToken[] = readTokens(module.get_option("openmetrics_tokens"), {
    name: "openmetrics_tokens",
    example: "{}",
    read: (fields) => (Object.keys(fields).length === 0 ? {} : undefined),
  });
  return (request) => {
    const held = module.tokens.identify(request);
    if (held !== undefined) {
      const need = { kind: "metrics" } as const;
      return "status" in held ? held : held.allows(need) ? undefined : module.tokens.lacks(held, need);
    }
    const presented = readAuthorization(request.headers.authorization);
    if (presented?.scheme === "bearer") {
      return findToken([presented.credentials], tokens) === undefined
        ? forbidden("that token is not one of the option openmetrics_tokens")
        : undefined;
    }
    if (!addresses(request.ip)) {
      return forbidden(
        "the figures are for the addresses of the option openmetrics_allow_ips, and for tokens with the scope metrics",
      );
    }
    if (isForwarded(request)) {
      return forbidden("through a proxy the figures need a token with the scope metrics");
    }
    const host = requestedHost(request);
    if (host !== undefined && isIP(host) === 0 && !isLocalName(host) && !hosts.has(host)) {
      return forbidden(
        "without a token the figures are given at localhost, at addresses, and at the names of the option openmetrics_hosts",
      );
    }
    return undefined;
  };
}

function addressList(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = "", bits] = entry.split("/");
    const family = isIP(address);
    const width = bits === undefined ? undefined : Number(bits);
    const isWidth = width === undefined || (/^\d+$/.test(bits ?? "") && width <= (family === 6 ? 128 : 32));
    if (family === 0 || !isWidth) {
      throw new ModhostError("OPTION_INVALID", {
        name: "openmetrics_allow_ips",
        value: JSON.stringify(entry),
        allowed: 'each entry must be an address or a range such as "10.0.0.0/8"',
      });
    }
    const type = family === 6 ? "ipv6" : "ipv4";
    if (width === undefined) list.addAddress(address, type);
    else list.addSubnet(address, width, type);
  }
  return (address) => {
    const family = isIP(address);
    return family !== 0 && list.check(address, family === 6 ? "ipv6" : "ipv4");
  };
}
