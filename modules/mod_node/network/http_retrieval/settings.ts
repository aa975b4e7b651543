/** Reads the settings of gateways as sources of blocks from the config. */
import type { Repo } from "../../storage/repo/repo.ts";
import { parseSize } from "../../util/size.ts";
import { parseMultiaddr } from "../swarm/multiaddr.ts";
import { isLoopback, isPublic } from "../swarm/public_ip.ts";

export interface RetrievalSettings {
  readonly enabled: boolean;
  /** Maximum number of concurrent requests. */
  readonly workers: number;
  /** Maximum size of a block in bytes. */
  readonly maxBlockSize: number;
  /** Whether to skip the verification of certificates. */
  readonly insecure: boolean;
  /** Whether a host may be used. */
  allows(host: string): boolean;
  /** Whether connections of a host to an IP address are allowed. */
  mayDial(host: string, ip: string): boolean;
}

const DEFAULT_WORKERS = 16;
const DEFAULT_BLOCK_SIZE = "2MiB";

/** @throws NodeError for an invalid size */
export function retrievalSettings(config: Pick<Repo["config"], "value">): RetrievalSettings {
  const hosts = (path: "HTTPRetrieval.Allowlist" | "HTTPRetrieval.Denylist") =>
    new Set((config.value(path) ?? []).map((host) => host.trim().toLowerCase()));
  const allowed = hosts("HTTPRetrieval.Allowlist");
  const denied = hosts("HTTPRetrieval.Denylist");
  const isLocal = listensOnLoopbackAlone(config.value("Addresses.Swarm") ?? []);
  return {
    enabled: config.value("HTTPRetrieval.Enabled") ?? true,
    workers: config.value("HTTPRetrieval.NumWorkers") || DEFAULT_WORKERS,
    maxBlockSize: parseSize(config.value("HTTPRetrieval.MaxBlockSize") || DEFAULT_BLOCK_SIZE),
    insecure: config.value("HTTPRetrieval.TLSInsecureSkipVerify") ?? false,
    allows: (host) => !denied.has(host) && (allowed.size === 0 || allowed.has(host)),
    mayDial: (host, ip) => allowed.has(host) || isPublic(ip) || (isLocal && isLoopback(ip)),
  };
}

/** Whether the node only listens on loopback addresses, so that it stays within this machine. */
function listensOnLoopbackAlone(addresses: readonly string[]): boolean {
  const hosts = addresses.map((address) => parseMultiaddr(address).getComponents()[0]?.value ?? "");
  return hosts.length > 0 && hosts.every(isLoopback);
}
