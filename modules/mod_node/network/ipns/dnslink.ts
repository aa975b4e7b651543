/** Links from domains to paths in their DNS records (network section 3.5). */

import { wholePath } from "../../content/resolver/path.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";

/** The TXT records of a name, each as one text; none when there is no such name. @throws when nobody could tell */
export type LookupTxt = (name: string, signal: AbortSignal | undefined) => Promise<readonly string[]>;

export interface DnslinkOptions {
  /** Links that are followed at most. */
  readonly depth: number;
  readonly signal?: AbortSignal | undefined;
}

/** Where a link leads; `limited` when there would be more to follow. */
export interface ResolvedPath {
  readonly path: string;
  readonly limited: boolean;
}

/** Links from one domain to the next that are followed when nobody says. */
export const DEFAULT_MAX_DEPTH = 32;

export const recursionExceeded = () => new NodeError("could not resolve name (recursion limit exceeded)");

const named = "/ipns/";
const longestName = 255;
const longestLabel = 63;

/** The rules of DNS: almost every word is a name there. */
export function isDomain(name: string): boolean {
  const labels = name.replace(/\.$/, "").split(".");
  const bytes = (text: string) => Buffer.byteLength(text);
  return bytes(name) <= longestName && labels.every((label) => label !== "" && bytes(label) <= longestLabel);
}

/** The path that a TXT record links to; undefined when it is no link. */
export function parseDnslink(record: string): string | undefined {
  const bare = record.startsWith("dnslink=") ? record.slice("dnslink=".length) : record;
  // Without the prefix only a CID is a link.
  if (bare === record && record.includes("/")) return undefined;
  try {
    return wholePath(bare);
  } catch {
    return undefined;
  }
}

/**
 * Follows the link of `domain` or `domain/sub/path`, and on from one domain to the next.
 *
 * @throws NodeError with the reference's texts: no domain, no link, nobody could tell
 */
export async function resolveDnslink(
  name: string,
  lookUp: LookupTxt,
  { depth, signal }: DnslinkOptions,
): Promise<ResolvedPath> {
  let path = await step(name, lookUp, signal);
  for (let left = depth - 1; path.startsWith(named); left -= 1) {
    if (left === 0) return { path, limited: true };
    path = await step(path.slice(named.length), lookUp, signal);
  }
  return { path, limited: false };
}

async function step(name: string, lookUp: LookupTxt, signal: AbortSignal | undefined): Promise<string> {
  const [domain = "", ...below] = name.split("/");
  if (!isDomain(domain)) throw new NodeError(`not a valid domain name: ${domain}`);
  const link = await linkOf(domain, lookUp, signal);
  if (link === undefined) {
    const last = name.replace(/\/+$/, "").split("/").at(-1) ?? "";
    const reason = `${quote(last)} is missing a DNSLink record (https://docs.ipfs.io/concepts/dnslink/)`;
    throw new NodeError(`could not resolve name: ${reason}`, { code: "NAME_NOT_FOUND" });
  }
  return below.length === 0 ? link : `${link.replace(/\/+$/, "")}/${below.join("/")}`;
}

/** The one of `_dnslink.<domain>` comes before that of the domain itself, and is not waited for with the other. */
async function linkOf(domain: string, lookUp: LookupTxt, signal: AbortSignal | undefined): Promise<string | undefined> {
  const full = domain.endsWith(".") ? domain : `${domain}.`;
  const own = linkAt(full, lookUp, signal);
  own.catch(() => {});
  let trouble: { readonly reason: unknown } | undefined;
  const below = await linkAt(`_dnslink.${full}`, lookUp, signal).catch((reason: unknown) => {
    trouble = { reason };
    return undefined;
  });
  signal?.throwIfAborted();
  if (below !== undefined) return below;
  const found = await own;
  if (found === undefined && trouble !== undefined) throw trouble.reason;
  return found;
}

async function linkAt(name: string, lookUp: LookupTxt, signal: AbortSignal | undefined): Promise<string | undefined> {
  let records: readonly string[];
  try {
    records = await lookUp(name, signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw failure("NAME_NOT_FOUND", undefined, error);
  }
  for (const record of records) {
    const link = parseDnslink(record);
    if (link !== undefined) return link;
  }
  return undefined;
}
