/** DNSLink: links in DNS records. */

import { DEFAULT_MAX_DEPTH, type ResolvedPath, recursionExceeded } from "../network/ipns/dnslink.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { type CallOptions, readOptions } from "./common.ts";

export interface DnsOptions extends CallOptions {
  /** Resolve repeatedly until the result is not a domain; true by default. */
  readonly recursive?: boolean | undefined;
}

/**
 * Resolves to the path that the DNS records of a domain link to. @throws NodeError if there is no
 * link
 */
export type DnsApi = (domain: string, options?: DnsOptions) => Promise<string>;

export function dnsApi(node: LowLevelNode): DnsApi {
  return async (domain, { recursive = true, ...options } = {}) => {
    const { signal } = readOptions(options);
    const depth = recursive ? DEFAULT_MAX_DEPTH : 1;
    return pathOf(await node.names.resolveDnslink(domain, { depth, signal }), recursive);
  };
}

/** Without `recursive`, a result that is itself a name is accepted. */
export function pathOf({ path, limited }: ResolvedPath, recursive: boolean): string {
  if (limited && recursive) throw recursionExceeded();
  return path;
}
