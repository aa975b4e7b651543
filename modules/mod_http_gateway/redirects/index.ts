/** Applies the file `_redirects` of a website to paths that do not exist. */
import { isDirectory, NodeError, openFile, readFile } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import { wholeResponse } from "../content/response.ts";
import { fileSource } from "../content/source.ts";
import { type ContentTarget, escapedPath } from "../content_target.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { cacheControl } from "../headers/cache.ts";
import { headerText } from "../headers/content.ts";
import { namesIn } from "../request/path.ts";
import { Redirect, type RedirectStatus } from "../request/redirect.ts";
import { type Found, find } from "../resolve.ts";
import { unixfsResponse } from "../responses/unixfs.ts";
import {
  decoded,
  filled,
  MAX_RULES_BYTES,
  matchRules,
  parseRules,
  type Rule,
  type RuleMatch,
  RulesFault,
} from "./rules.ts";

const FILE = "_redirects";

/** Whether the path is missing on a host that is a website. Paths of a gateway have no rules. */
export const mayHaveRules = ({ target, wanted }: GatewayCall, thrown: unknown): boolean =>
  (target.website === "subdomain" || target.website === "dnslink") &&
  target.segments.length > 0 &&
  wanted.format === undefined &&
  isMissing(thrown);

const isMissing = (thrown: unknown): boolean => NodeError.is(thrown) && thrown.code === "NO_LINK";

/** @throws `missing` if no rule matches, {Redirect}, {Refusal} 500 for an invalid file */
export async function respondByRules(call: GatewayCall, missing: unknown): Promise<ResponseFields> {
  try {
    const rules = await rulesOf(call);
    const match = rules && matchRules(rules, call.target.segments);
    if (match === undefined) throw missing;
    return await respondByRule(call, match);
  } catch (error) {
    if (!(error instanceof RulesFault)) throw error;
    const { namespace, root } = call.target;
    const file = JSON.stringify(`/${namespace}/${root}/${FILE}`);
    throw new Refusal(500, `trouble processing ${FILE} file at ${file}: could not parse ${FILE}: ${error.message}`);
  }
}

/** Returns undefined if the website has no rules. */
async function rulesOf(call: GatewayCall): Promise<Rule[] | undefined> {
  const { reading } = call;
  const found = await findAt(call, [FILE]);
  if (found === undefined) return undefined;
  const file = await openFile(found.cid, reading.readPath);
  if (isDirectory(file)) return undefined;
  const pieces: Uint8Array[] = [];
  let size = 0;
  // The size recorded in the file may be wrong, so the bytes are counted.
  for await (const piece of readFile(file, reading.read, { length: MAX_RULES_BYTES + 1 })) {
    pieces.push(piece);
    size += piece.length;
    if (size > MAX_RULES_BYTES) throw new RulesFault(`redirects file size cannot exceed ${MAX_RULES_BYTES} bytes`);
  }
  return parseRules(Buffer.concat(pieces).toString());
}

/** Returns the content of another path of the website; undefined if it does not exist. */
async function findAt({ node, target, reading }: GatewayCall, segments: readonly string[]): Promise<Found | undefined> {
  const other: ContentTarget = { ...target, segments, slash: false };
  return await find(node, other, reading).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
}

async function respondByRule(call: GatewayCall, match: RuleMatch): Promise<ResponseFields> {
  const { status } = match.rule;
  if (status >= 300 && status < 400) {
    throw new Redirect(status as RedirectStatus, locationOf(call, match), { x_ipfs_path: headerText(call.path) });
  }
  const target = decoded(filled(match.rule.to, match.values, escapedPath));
  const found = await findAt(call, namesIn(target));
  if (found === undefined) {
    throw new Refusal(404, `failed to resolve ${call.path}: ${FILE} leads to ${target}, which does not exist`);
  }
  // The URL stays the same, and so does the name that determines the type.
  if (status === 200) return unixfsResponse({ ...call, target: { ...call.target, slash: true } }, found);
  return pageResponse(call, found, status);
}

/** Responds with the website's own error page. */
async function pageResponse(call: GatewayCall, found: Found, status: number): Promise<ResponseFields> {
  const { reading, settings, path } = call;
  const file = await openFile(found.cid, reading.read);
  if (isDirectory(file)) throw new RulesFault("a page for an error must be a file");
  const headers = {
    ...settings.headers,
    // A website under a name may get this page later, so only the response for a CID may be cached.
    cache_control: found.lifetime === undefined ? cacheControl(found) : undefined,
    etag: `"${found.text}"`,
    x_ipfs_path: headerText(path),
  };
  const response = await wholeResponse(call, { source: fileSource(file, reading), type: "text/html", headers });
  return { ...response, status_code: status };
}

/** Returns the escaped Location. The query of the request is kept, before the query of the rule. */
function locationOf({ query }: GatewayCall, { rule, values }: RuleMatch): string {
  const [, base = "", own = "", fragment = ""] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(rule.to) ?? [];
  const parameters = new URLSearchParams(filled(own, values, encodeURIComponent));
  for (const name of new Set(query.keys())) parameters.delete(name);
  for (const [name, value] of query) parameters.append(name, value);
  parameters.sort();
  const search = parameters.size === 0 ? "" : `?${parameters}`;
  return sendable(`${filled(base, values, escapedPath)}${search}${filled(fragment, values, encodeURIComponent)}`);
}

/** Escapes characters that no URL can contain, which clients would interpret differently. */
const sendable = (location: string): string =>
  location.toWellFormed().replace(/[^\x21-\x7e]+|[\\"<>]/gu, (text) => encodeURIComponent(text));
