/**
 * Resolves DNSLink: paths in the TXT records of domains, as the DNSLink specification defines them.
 */

import { fullPath } from "../../content/resolver/path.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { trimEnd } from "../../util/trim.ts";

/**
 * Resolves to the TXT records of a name, each as one text; to an empty list if the name does not
 * exist. @throws if the lookup fails
 */
export type LookupTxt = (name: string, signal: AbortSignal | undefined) => Promise<readonly string[]>;

export interface DnslinkOptions {
  /** Maximum number of links to follow. */
  readonly depth: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The result of resolving a name; `limited` if it is another name, and the maximum depth is
 * reached.
 */
export interface ResolvedPath {
  readonly path: string;
  readonly limited: boolean;
  /**
   * Milliseconds for which the result may be cached: the shortest TTL of the names on the way;
   * undefined if none has a TTL.
   */
  readonly ttlMs?: number | undefined;
}

/** Default maximum number of names that are followed one after the other. */
export const DEFAULT_MAX_DEPTH = 32;

export const recursionExceeded = () => failure("NAME_LOOP");

const IPNS_PREFIX = "/ipns/";
const MAX_NAME_SIZE = 255;
const MAX_LABEL_SIZE = 63;

/** Whether a text may be a domain name: DNS allows almost any characters. */
export function isDomain(name: string): boolean {
  const labels = name.replace(/\.$/, "").split(".");
  const bytes = (text: string) => Buffer.byteLength(text);
  return bytes(name) <= MAX_NAME_SIZE && labels.every((label) => label !== "" && bytes(label) <= MAX_LABEL_SIZE);
}

/** Returns the path in a TXT record; undefined if it is not a link. */
export function parseDnslink(record: string): string | undefined {
  const bare = record.startsWith("dnslink=") ? record.slice("dnslink=".length) : record;
  // Without the prefix, only a bare CID is a link.
  if (bare === record && record.includes("/")) return undefined;
  try {
    return fullPath(bare);
  } catch {
    return undefined;
  }
}

/**
 * Resolves `domain` or `domain/sub/path`, and follows links to further domains.
 *
 * @throws NodeError with go-ipfs's texts for an invalid domain, a missing link and a failed lookup
 */
export async function resolveDnslink(
  name: string,
  lookUp: LookupTxt,
  { depth, signal }: DnslinkOptions,
): Promise<ResolvedPath> {
  let path = await step(name, lookUp, signal);
  for (let left = depth - 1; path.startsWith(IPNS_PREFIX); left -= 1) {
    if (left === 0) return { path, limited: true };
    path = await step(path.slice(IPNS_PREFIX.length), lookUp, signal);
  }
  return { path, limited: false };
}

async function step(name: string, lookUp: LookupTxt, signal: AbortSignal | undefined): Promise<string> {
  const [domain = "", ...below] = name.split("/");
  if (!isDomain(domain)) throw failure("DOMAIN_INVALID", { domain });
  const link = await linkOf(domain, lookUp, signal);
  if (link === undefined) {
    const last = trimEnd(name, "/").split("/").at(-1) ?? "";
    const reason = `${quote(last)} is missing a DNSLink record (https://docs.ipfs.io/concepts/dnslink/)`;
    throw new NodeError("NAME_NOT_FOUND", `could not resolve name: ${reason}`);
  }
  return below.length === 0 ? link : `${trimEnd(link, "/")}/${below.join("/")}`;
}

/**
 * Looks up the link of a domain. A link of `_dnslink.<domain>` takes precedence over one of the
 * domain itself, whose lookup is then not awaited.
 */
async function linkOf(domain: string, lookUp: LookupTxt, signal: AbortSignal | undefined): Promise<string | undefined> {
  const full = domain.endsWith(".") ? domain : `${domain}.`;
  const own = linkAt(full, lookUp, signal);
  own.catch(() => {});
  let lookupError: { readonly reason: unknown } | undefined;
  const below = await linkAt(`_dnslink.${full}`, lookUp, signal).catch((reason: unknown) => {
    lookupError = { reason };
    return undefined;
  });
  signal?.throwIfAborted();
  if (below !== undefined) return below;
  const found = await own;
  if (found === undefined && lookupError !== undefined) throw lookupError.reason;
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
