/** DNSLink: links in DNS records. */

import type { LowLevelNode } from "../low_level_node.ts";
import { DEFAULT_MAX_DEPTH, type ResolvedPath, recursionExceeded } from "../network/ipns/dnslink.ts";
import { type CallOptions, reading } from "./common.ts";

export interface DnsOptions extends CallOptions {
  /** Resolve repeatedly until the result is not a domain; true by default. */
  readonly recursive?: boolean | undefined;
}

/** The path that the DNS records of a domain link to. @throws NodeError if there is no link */
export type DnsApi = (domain: string, options?: DnsOptions) => Promise<string>;

export function dnsApi(node: LowLevelNode): DnsApi {
  return async (domain, { recursive = true, ...options } = {}) => {
    const { signal } = reading(options);
    const depth = recursive ? DEFAULT_MAX_DEPTH : 1;
    return pathOf(await node.names.resolveDnslink(domain, { depth, signal }), recursive);
  };
}

/** Without `recursive`, a result that is itself a name is accepted. */
export function pathOf({ path, limited }: ResolvedPath, recursive: boolean): string {
  if (limited && recursive) throw recursionExceeded();
  return path;
}
