/**
 * Looks up TXT records: with the system's resolver, or over HTTPS if `DNS.Resolvers` names a
 * resolver.
 */
import { Resolver } from "node:dns/promises";
import { domainResolvers } from "../../storage/repo/defaults.ts";
import { readAll } from "../../util/async/read_all.ts";
import type { LookupTxt } from "./dnslink.ts";

/** URLs of resolvers by domain with a final dot; an empty URL means the system's resolver. */
export type Resolvers = Readonly<Record<string, string>>;

/** Error codes for a name that does not exist, or has no TXT record. */
const ABSENT_CODES = new Set(["ENOTFOUND", "ENODATA", "NXDOMAIN"]);
/** The response code NXDOMAIN of RFC 1035. */
const NXDOMAIN = 3;
const MAX_RESPONSE_SIZE = 65_535;
/** Timeout in milliseconds of a request over HTTPS. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** @param resolvers called for each lookup @param timeoutMs timeout of a request over HTTPS */
export function createTxtLookup(resolvers: () => Resolvers, timeoutMs = DEFAULT_TIMEOUT_MS): LookupTxt {
  return (name, signal) => {
    const url = resolverOf(name, { ...domainResolvers, ...resolvers() });
    return url === "" ? fromSystem(name, signal) : fromUrl(url, name, timeoutMs, signal);
  };
}

/** Returns the resolver of the longest domain that contains the name. */
export function resolverOf(name: string, resolvers: Resolvers): string {
  const full = `.${name.toLowerCase()}`;
  let best: string | undefined;
  for (const domain of Object.keys(resolvers)) {
    const fits = domain === "." || full.endsWith(`.${domain.toLowerCase()}`);
    if (fits && (best === undefined || domain.length > best.length)) best = domain;
  }
  return best === undefined ? "" : (resolvers[best] ?? "");
}

async function fromSystem(name: string, signal: AbortSignal | undefined): Promise<readonly string[]> {
  const resolver = new Resolver();
  const cancel = () => resolver.cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    const records = await resolver.resolveTxt(name.replace(/\.$/, ""));
    return records.map((parts) => parts.join(""));
  } catch (error) {
    if (ABSENT_CODES.has((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

/** Looks up TXT records with DNS over HTTPS, RFC 8484. */
async function fromUrl(url: string, name: string, timeoutMs: number, signal?: AbortSignal): Promise<readonly string[]> {
  const { decode, encode, RECURSION_DESIRED } = await import("@dnsquery/dns-packet");
  const question = { type: "TXT" as const, name: name.replace(/\.$/, "") };
  const query = Buffer.from(encode({ type: "query", id: 0, flags: RECURSION_DESIRED, questions: [question] }));
  const at = new URL(url);
  at.searchParams.set("dns", query.toString("base64url"));
  const timeout = AbortSignal.timeout(timeoutMs);
  const bytes = await request(at, signal === undefined ? timeout : AbortSignal.any([signal, timeout])).catch(
    (error: Error) => {
      if (timeout.aborted && !signal?.aborted)
        throw new Error(`the resolver ${at.origin} did not respond`, { cause: error });
      throw error;
    },
  );
  const { answers: records = [], ...head } = decode(bytes);
  const code = "flags" in head ? Number(head.flags) & 15 : 0;
  if (code === NXDOMAIN) return [];
  if (code !== 0) throw new Error(`the resolver ${at.origin} responded with code ${code}`);
  return records.flatMap((record) => (record.type === "TXT" ? [textOf(record.data)] : []));
}

async function request({ href, origin }: URL, signal: AbortSignal): Promise<Uint8Array> {
  const response = await fetch(href, { headers: { accept: "application/dns-message" }, signal });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new Error(`the resolver ${origin} responded with status ${response.status}`);
  }
  const tooLong = () => new Error(`the resolver ${origin} sent more than ${MAX_RESPONSE_SIZE} bytes`);
  return readAll(response.body, MAX_RESPONSE_SIZE, tooLong);
}

/** Joins the strings of a TXT record. */
function textOf(data: unknown): string {
  const parts = Array.isArray(data) ? data : [data];
  return parts.map((part) => (typeof part === "string" ? part : Buffer.from(part as Uint8Array).toString())).join("");
}
