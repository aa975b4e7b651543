/** The path gateway: parses `/ipfs/CID/...` and `/ipns/NAME/...`. */
import { parseCid, parsePeerId, peerIdEncoder } from "modhost/node";
import type { HttpRequest } from "../../../core/types.ts";
import { type ContentTarget, escapedPath, type Namespace } from "../content_target.ts";
import { Refusal } from "../errors/refusal.ts";
import { unescapedBytes, withBytes } from "./byte_path.ts";
import { queryOf, suffixOf } from "./query.ts";
import { Redirect } from "./redirect.ts";

/** The encoding of names below `/ipns`. */
export const keyText = peerIdEncoder("base36");
const MAX_IDENTITY_BYTES = 128;

type PathRequest = Pick<HttpRequest, "header" | "url" | "path">;

/**
 * `requested` is the decoded part of the path after `/ipfs/` or `/ipns/`. @throws {Redirect} to the
 * canonical URL, {Refusal} 400
 */
export function targetOfPath(namespace: Namespace, requested: string, request: PathRequest): ContentTarget {
  const { path } = request;
  const rest = withBytes(requested, request);
  const base = requested === "" ? path.replace(/\/$/, "") : path.slice(0, path.length - requested.length - 1);
  redirectUri(request, base);
  const [root = "", ...segments] = namesIn(rest);
  if (root === "") throw invalid(path, "path does not have enough components");
  if (segments.length === 0) refuseWorker(request);
  const slash = rest.endsWith("/");
  if (namespace === "ipfs") requireCid(root, segments, request);
  else redirectKey(root, rest, base, request);
  return { namespace, root, segments, slash, prefix: `${base}/${root}`, website: undefined, gateway: "" };
}

/** Returns the names of a path, without empty ones. Resolves `.` and `..`. */
export function namesIn(rest: string): string[] {
  const segments: string[] = [];
  for (const name of rest.split("/")) {
    if (name === "..") segments.pop();
    else if (name !== "" && name !== ".") segments.push(name);
  }
  return segments;
}

const invalid = (path: string, reason: string, cause?: unknown) =>
  new Refusal(400, `invalid path ${JSON.stringify(path)}: ${reason}`, { cause });

/** A service worker of one root would control all other roots of this origin. */
function refuseWorker(request: PathRequest): void {
  if (request.header("service-worker") === "script") {
    throw new Refusal(
      400,
      "A service worker may not be registered for a root of a path gateway, because it would control the other roots as well",
    );
  }
}

function requireCid(root: string, segments: readonly string[], request: PathRequest): void {
  try {
    const { multihash } = rootCid(root);
    if (multihash.code !== 0 || multihash.digest.length <= MAX_IDENTITY_BYTES) return;
  } catch (error) {
    // `/ipfs/ipns/NAME` has two namespaces, of which the second is meant.
    if ((root === "ipfs" || root === "ipns") && segments.length > 0) {
      if (root === "ipns" || isCid(segments[0] as string)) {
        throw new Redirect(301, escapedPath(`/${root}/${segments.join("/")}`) + suffixOf(request));
      }
    }
    throw invalid(request.path, `invalid cid: ${(error as Error).message}`, error);
  }
  throw invalid(request.path, `identity digests have at most ${MAX_IDENTITY_BYTES} bytes`);
}

const roots = new Map<string, ReturnType<typeof parseCid>>();
const MAX_ROOTS = 1000;
/** Maximum length of a cached CID. CIDs with ordinary hashes are shorter. */
const MAX_ROOT_LENGTH = 128;

/**
 * Like `parseCid`, with a cache, because requests repeat the same roots, and each request parses
 * its root twice.
 */
export function rootCid(text: string): ReturnType<typeof parseCid> {
  let cid = roots.get(text);
  if (cid !== undefined) return cid;
  cid = parseCid(text);
  if (roots.size >= MAX_ROOTS) roots.clear();
  if (text.length <= MAX_ROOT_LENGTH) roots.set(text, cid);
  return cid;
}

function isCid(text: string): boolean {
  try {
    parseCid(text);
    return true;
  } catch {
    return false;
  }
}

/** Redirects a key in another form to its canonical form, under which caches and hosts know it. */
function redirectKey(root: string, rest: string, base: string, request: PathRequest): void {
  const key = keyOf(root);
  if (key === undefined || key === root) return;
  throw new Redirect(302, escapedPath(`${base}/${key}${rest.slice(root.length)}`) + suffixOf(request));
}

/** Returns the name of a key in canonical form; undefined for a domain, or an invalid name. */
export function keyOf(root: string): string | undefined {
  // A quick test for domains, which are the most common case.
  if (root.includes(".")) return undefined;
  try {
    return keyText(parsePeerId(root));
  } catch {
    return undefined;
  }
}

/**
 * Redirects `?uri=ipfs://CID`, which browsers use when the gateway is their handler for such URLs.
 */
function redirectUri(request: PathRequest, base: string): void {
  const uri = queryOf(request).get("uri");
  if (uri === null) return;
  const [, scheme, rest] = /^(ip[fn]s):\/\/(.+)$/s.exec(uri) ?? [];
  if (scheme === undefined || rest === undefined)
    throw new Refusal(400, "uri query parameter scheme must be ipfs or ipns");
  const [path = "", query] = rest.split(/\?(.*)/s);
  const home = base.replace(/\/ip[fn]s$/, "");
  throw new Redirect(
    301,
    `${home}/${scheme}/${escapedPath(unescapedBytes(path))}${query === undefined ? "" : `?${query}`}`,
  );
}
