/** TXT records: from the system's resolver, or over HTTPS from those that the configuration names. */
import { Resolver } from "node:dns/promises";
import { readAll } from "../../util/async/read_all.ts";
import type { LookupTxt } from "./dnslink.ts";

/** Domain with a dot at its end to the URL of its resolver; empty stands for the system's. */
export type Resolvers = Readonly<Record<string, string>>;

/** Domains that the public DNS does not have. */
const ethereum = "https://resolver.cloudflare-eth.com/dns-query";
const builtIn: Resolvers = { "eth.": ethereum, "crypto.": ethereum };

/** The system says so of names that there are not, or that have no such record. */
const absent = new Set(["ENOTFOUND", "ENODATA", "NXDOMAIN"]);
const noSuchName = 3;
const MAX_RESPONSE_SIZE = 65_535;
/** Milliseconds for which a resolver is waited for. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** `resolvers` is read at each look-up; over HTTPS none takes longer than `wait` milliseconds. */
export function createTxtLookup(resolvers: () => Resolvers, wait = DEFAULT_TIMEOUT_MS): LookupTxt {
  return (name, signal) => {
    const url = resolverOf(name, { ...builtIn, ...resolvers() });
    return url === "" ? fromSystem(name, signal) : fromUrl(url, name, wait, signal);
  };
}

/** The resolver of the longest domain that the name ends in. */
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
  const leave = () => resolver.cancel();
  signal?.addEventListener("abort", leave, { once: true });
  try {
    const records = await resolver.resolveTxt(name.replace(/\.$/, ""));
    return records.map((parts) => parts.join(""));
  } catch (error) {
    if (absent.has((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  } finally {
    signal?.removeEventListener("abort", leave);
  }
}

/** RFC 8484. */
async function fromUrl(url: string, name: string, wait: number, signal?: AbortSignal): Promise<readonly string[]> {
  const { decode, encode, RECURSION_DESIRED } = await import("@dnsquery/dns-packet");
  const question = { type: "TXT" as const, name: name.replace(/\.$/, "") };
  const query = Buffer.from(encode({ type: "query", id: 0, flags: RECURSION_DESIRED, questions: [question] }));
  const at = new URL(url);
  at.searchParams.set("dns", query.toString("base64url"));
  const late = AbortSignal.timeout(wait);
  const bytes = await ask(at, signal === undefined ? late : AbortSignal.any([signal, late])).catch((error: Error) => {
    if (late.aborted && !signal?.aborted) throw new Error(`the resolver ${at.origin} did not answer`, { cause: error });
    throw error;
  });
  const { answers = [], ...head } = decode(bytes);
  const code = "flags" in head ? Number(head.flags) & 15 : 0;
  if (code === noSuchName) return [];
  if (code !== 0) throw new Error(`the resolver ${at.origin} answered with code ${code}`);
  return answers.flatMap((record) => (record.type === "TXT" ? [textOf(record.data)] : []));
}

async function ask({ href, origin }: URL, signal: AbortSignal): Promise<Uint8Array> {
  const answer = await fetch(href, { headers: { accept: "application/dns-message" }, signal });
  if (!answer.ok || answer.body === null) {
    await answer.body?.cancel();
    throw new Error(`the resolver ${origin} answered ${answer.status}`);
  }
  const tooLong = () => new Error(`the resolver ${origin} answered more than ${MAX_RESPONSE_SIZE} bytes`);
  return readAll(answer.body, MAX_RESPONSE_SIZE, tooLong);
}

/** A record is a list of strings that belong together. */
function textOf(data: unknown): string {
  const parts = Array.isArray(data) ? data : [data];
  return parts.map((part) => (typeof part === "string" ? part : Buffer.from(part as Uint8Array).toString())).join("");
}
