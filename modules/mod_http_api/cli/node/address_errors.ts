/** Errors for configured addresses that cannot be opened, with the error texts of go-ipfs. */

import { failure, type Node } from "modhost/node";
import { ModhostError } from "../../../../core/index.ts";
import type { NetEndpoint } from "../../../../core/types.ts";
import { addressList, endpointOf } from "../../http/addresses.ts";

/** The config keys of the listen addresses, with the names that error messages use for them. */
const listeners = [
  { key: "Addresses.API", title: "serveHTTPApi", name: "API" },
  { key: "Addresses.Gateway", title: "serveHTTPGateway", name: "gateway" },
] as const;

/** @throws NodeError for an address that is neither a TCP port nor a Unix socket */
export function requireAddresses({ lowLevel: { repo } }: Node): void {
  for (const { key, title, name } of listeners) {
    const wrong = addressList(repo.config.value(key)).find((address) => endpointOf(address) === undefined);
    if (wrong === undefined) continue;
    const why = "neither a TCP port nor a Unix socket";
    throw failure("CONFIG_INVALID", {
      reason: `${title}: invalid ${name} address: ${JSON.stringify(wrong)} (err: ${why})`,
    });
  }
}

/** Go's messages for bind errors. */
const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "bind: address already in use",
  EACCES: "bind: permission denied",
  EADDRNOTAVAIL: "bind: cannot assign requested address",
};

/**
 * Converts an ENDPOINT_UNAVAILABLE error to an error with go-ipfs's text. Returns other errors
 * unchanged.
 */
export function listenErrorOf(error: unknown, { lowLevel: { repo } }: Node): unknown {
  if (!ModhostError.is(error) || error.code !== "ENDPOINT_UNAVAILABLE") return error;
  const endpoint = error.details.endpoint as NetEndpoint;
  const isGateway = String(error.details.service).startsWith("http_api_gateway");
  const { key, title } = isGateway ? listeners[1] : listeners[0];
  const address = addressList(repo.config.value(key)).find((each) => isSame(endpointOf(each), endpoint)) ?? "";
  const { code = "" } = (error.cause ?? {}) as NodeJS.ErrnoException;
  const reason = reasons[code] ?? String(error.details.reason);
  const boundAddress = "path" in endpoint ? `unix ${endpoint.path}` : `tcp ${endpoint.address}:${endpoint.port}`;
  return failure(
    "LISTEN_FAILED",
    { reason: `${title}: manet.Listen(${address}) failed: listen ${boundAddress}: ${reason}` },
    error,
  );
}

function isSame(one: NetEndpoint | undefined, other: NetEndpoint): boolean {
  if (one === undefined) return false;
  if ("path" in one) return "path" in other && one.path === other.path;
  return "port" in other && one.address === other.address && one.port === other.port;
}
