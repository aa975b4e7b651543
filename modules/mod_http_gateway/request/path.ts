/** The path gateway: what `/ipfs/CID/...` and `/ipns/NAME/...` stand for. */
import { parseCid, parsePeerId, peerIdEncoder } from "modhost/node";
import type { HttpRequest } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import { escapedPath, type Namespace, type Place } from "../place.ts";
import { queryOf, suffixOf } from "./query.ts";
import { Redirect } from "./redirect.ts";

/** What names below `/ipns` are written in. */
export const keyText = peerIdEncoder("base36");
const MAX_IDENTITY_BYTES = 128;

type Asking = Pick<HttpRequest, "headers" | "url" | "path">;

/**
 * `rest` is what follows `/ipfs/` or `/ipns/`, decoded.
 *
 * @throws {Redirect} to where it should have been asked, {Refusal} 400
 */
export function placeOfPath(namespace: Namespace, rest: string, request: Asking): Place {
  const { path } = request;
  const base = rest === "" ? path.replace(/\/$/, "") : path.slice(0, path.length - rest.length - 1);
  redirectUri(request, base);
  const [root = "", ...segments] = namesIn(rest);
  if (root === "") throw invalid(path, "path does not have enough components");
  if (segments.length === 0) refuseWorker(request);
  const slash = rest.endsWith("/");
  if (namespace === "ipfs") requireCid(root, segments, request);
  else redirectKey(root, rest, base, request);
  return { namespace, root, segments, slash, prefix: `${base}/${root}`, website: undefined, gateway: "" };
}

/** The names of a path, without empty ones, with `.` and `..` as paths have them. */
export function namesIn(rest: string): string[] {
  const kept: string[] = [];
  for (const name of rest.split("/")) {
    if (name === "..") kept.pop();
    else if (name !== "" && name !== ".") kept.push(name);
  }
  return kept;
}

const invalid = (path: string, reason: string, cause?: unknown) =>
  new Refusal(400, `invalid path ${JSON.stringify(path)}: ${reason}`, { cause });

/** A root's own service worker would steer every other root of this origin. */
function refuseWorker({ headers }: Asking): void {
  if (headers.service_worker === "script") {
    throw new Refusal(
      400,
      "A service worker may not be registered for a root of a path gateway: its scope would be that of others",
    );
  }
}

function requireCid(root: string, segments: readonly string[], request: Asking): void {
  try {
    const { multihash } = rootCid(root);
    if (multihash.code !== 0 || multihash.digest.length <= MAX_IDENTITY_BYTES) return;
  } catch (error) {
    // `/ipfs/ipns/NAME`: two namespaces, of which the second is meant.
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
/** Characters of a CID whose hash is none that is out of the ordinary. */
const MAX_ROOT_LENGTH = 128;

/** As `parseCid`, which is asked for the same roots again and again: of what is below one, and twice by each request. */
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

/** A key in any other form is sent to the one that all caches and hosts know it by. */
function redirectKey(root: string, rest: string, base: string, request: Asking): void {
  const key = keyOf(root);
  if (key === undefined || key === root) return;
  throw new Redirect(302, escapedPath(`${base}/${key}${rest.slice(root.length)}`) + suffixOf(request));
}

/** The name of a key as it is shown; undefined for what is a domain, or nothing. */
export function keyOf(root: string): string | undefined {
  // The commonest case costs nothing.
  if (root.includes(".")) return undefined;
  try {
    return keyText(parsePeerId(root));
  } catch {
    return undefined;
  }
}

/** `?uri=ipfs://CID`: what browsers call that have the gateway as their handler of such addresses. */
function redirectUri(request: Asking, base: string): void {
  const uri = queryOf(request).get("uri");
  if (uri === null) return;
  const [, scheme, rest] = /^(ip[fn]s):\/\/(.+)$/s.exec(uri) ?? [];
  if (scheme === undefined || rest === undefined)
    throw new Refusal(400, "uri query parameter scheme must be ipfs or ipns");
  const [path = "", query] = rest.split(/\?(.*)/s);
  const home = base.replace(/\/ip[fn]s$/, "");
  throw new Redirect(301, `${home}/${scheme}/${escapedPath(decoded(path))}${query === undefined ? "" : `?${query}`}`);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
