/** Websites say by their file `_redirects` what is answered where they have nothing. */
import { isDirectory, NodeError, openFile, readFile } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import { unixfsAnswer } from "../answers/unixfs.ts";
import type { Asked } from "../asked.ts";
import { wholeAnswer } from "../content/answer.ts";
import { fileSource } from "../content/source.ts";
import { Refusal } from "../errors/refusal.ts";
import { cacheControl } from "../headers/cache.ts";
import { headerText } from "../headers/content.ts";
import { escapedPath, type Place } from "../place.ts";
import { namesIn } from "../request/path.ts";
import { Redirect, type RedirectStatus } from "../request/redirect.ts";
import { type Found, find } from "../resolve.ts";
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

/** Is there nothing at the path, on a host that is a website? Paths of a gateway have no rules. */
export const mayHaveRules = ({ place, wanted }: Asked, thrown: unknown): boolean =>
  (place.website === "subdomain" || place.website === "dnslink") &&
  place.segments.length > 0 &&
  wanted.format === undefined &&
  isMissing(thrown);

const isMissing = (thrown: unknown): boolean => NodeError.is(thrown) && thrown.code === "NO_LINK";

/** @throws what was `missing` where no rule fits, {Redirect}, {Refusal} 500 for a file that is broken */
export async function answerByRules(asked: Asked, missing: unknown): Promise<ResponseFields> {
  try {
    const rules = await rulesOf(asked);
    const match = rules && matchRules(rules, asked.place.segments);
    if (match === undefined) throw missing;
    return await answerBy(asked, match);
  } catch (error) {
    if (!(error instanceof RulesFault)) throw error;
    const { namespace, root } = asked.place;
    const file = JSON.stringify(`/${namespace}/${root}/${FILE}`);
    throw new Refusal(500, `trouble processing ${FILE} file at ${file}: could not parse ${FILE}: ${error.message}`);
  }
}

/** Undefined where the website has none. */
async function rulesOf(asked: Asked): Promise<Rule[] | undefined> {
  const { reading } = asked;
  const found = await findAt(asked, [FILE]);
  if (found === undefined) return undefined;
  const file = await openFile(found.cid, reading.readPath);
  if (isDirectory(file)) return undefined;
  const pieces: Uint8Array[] = [];
  let size = 0;
  // What the file says of its size may be wrong.
  for await (const piece of readFile(file, reading.read, { length: MAX_RULES_BYTES + 1 })) {
    pieces.push(piece);
    size += piece.length;
    if (size > MAX_RULES_BYTES) throw new RulesFault(`redirects file size cannot exceed ${MAX_RULES_BYTES} bytes`);
  }
  return parseRules(Buffer.concat(pieces).toString());
}

/** What another path of the website leads to; undefined for nothing. */
async function findAt({ node, place, reading }: Asked, segments: readonly string[]): Promise<Found | undefined> {
  const other: Place = { ...place, segments, slash: false };
  return await find(node, other, reading).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
}

async function answerBy(asked: Asked, match: RuleMatch): Promise<ResponseFields> {
  const { status } = match.rule;
  if (status >= 300 && status < 400) throw new Redirect(status as RedirectStatus, locationOf(asked, match));
  const target = decoded(filled(match.rule.to, match.values, escapedPath));
  const found = await findAt(asked, namesIn(target));
  if (found === undefined) {
    throw new Refusal(404, `failed to resolve ${asked.path}: ${target}, to which ${FILE} leads, is not there`);
  }
  // The address stays what it is, and so does its name, which tells the type.
  if (status === 200) return unixfsAnswer({ ...asked, place: { ...asked.place, slash: true } }, found);
  return pageAnswer(asked, found, status);
}

/** The website's own page for an error. */
async function pageAnswer(asked: Asked, found: Found, status: number): Promise<ResponseFields> {
  const { reading, settings, path } = asked;
  const file = await openFile(found.cid, reading.read);
  if (isDirectory(file)) throw new RulesFault("a page for an error must be a file");
  const headers = {
    ...settings.headers,
    // A name may have the page tomorrow.
    cache_control: found.lifetime === undefined ? cacheControl(found) : undefined,
    etag: `"${found.text}"`,
    x_ipfs_path: headerText(path),
  };
  const answer = await wholeAnswer(asked, { source: fileSource(file, reading), type: "text/html", headers });
  return { ...answer, status_code: status };
}

/** As it stands in the header: the query of the request is kept, and goes before that of the rule. */
function locationOf({ query }: Asked, { rule, values }: RuleMatch): string {
  const [, base = "", own = "", fragment = ""] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(rule.to) ?? [];
  const parameters = new URLSearchParams(filled(own, values, encodeURIComponent));
  for (const name of new Set(query.keys())) parameters.delete(name);
  for (const [name, value] of query) parameters.append(name, value);
  parameters.sort();
  const search = parameters.size === 0 ? "" : `?${parameters}`;
  return sendable(`${filled(base, values, escapedPath)}${search}${filled(fragment, values, encodeURIComponent)}`);
}

/** What no URL has as it is would be read differently by each client. */
const sendable = (location: string): string =>
  location.toWellFormed().replace(/[^\x21-\x7e]+|[\\"<>]/gu, (text) => encodeURIComponent(text));
