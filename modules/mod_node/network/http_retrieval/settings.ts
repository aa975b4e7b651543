/** What the config says of gateways as sources of blocks. */
import type { Repo } from "../../storage/repo/repo.ts";
import { parseSize } from "../../util/size.ts";
import { parseMultiaddr } from "../swarm/multiaddr.ts";
import { isLoopback, isPublic } from "../swarm/public_ip.ts";

export interface RetrievalSettings {
  readonly enabled: boolean;
  /** Requests at a time. */
  readonly workers: number;
  /** Bytes. */
  readonly maxBlockSize: number;
  /** Certificates are not checked. */
  readonly insecure: boolean;
  /** Whether a host may be used. */
  allows(host: string): boolean;
  /** Whether a host may be at an IP address. */
  mayDial(host: string, ip: string): boolean;
}

const DEFAULT_WORKERS = 16;
const DEFAULT_BLOCK_SIZE = "2MiB";

/** @throws NodeError for a size that is none */
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

/** A node that keeps to this machine. */
function listensOnLoopbackAlone(addresses: readonly string[]): boolean {
  const hosts = addresses.map((address) => parseMultiaddr(address).getComponents()[0]?.value ?? "");
  return hosts.length > 0 && hosts.every(isLoopback);
}
