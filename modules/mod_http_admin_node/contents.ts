/**
 * Serves content for download and display, with ranges and conditions. A browser runs none of it.
 */
import type { NodeModule } from "modhost/node";
import { type ByteRange, parseRanges, precondition, rangeApplies, type Validators } from "../../core/http/index.ts";
import { HttpError } from "../../core/index.ts";
import type { HttpRequest, PooledBody, ResponseFields, ResponseHeaders } from "../../core/types.ts";
import { attachment, disposition } from "./disposition.ts";
import { isFailure, within } from "./failures.ts";
import { BYTES, type Media, mediaOf, textMedia } from "./media.ts";

/** Seconds until the first bytes must arrive. The rest has no time limit. */
const OPEN_SECONDS = 60;

/** Content may come from anybody. It must not run scripts, load other resources, or be framed. */
const guarded: ResponseHeaders = {
  content_security_policy: "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
  x_content_type_options: "nosniff",
  cross_origin_resource_policy: "same-origin",
  referrer_policy: "no-referrer",
  cache_control: "private, no-cache",
};

export type Shown = "inline" | "download" | "text";

/** The content at a path of the mutable namespace, or below /ipfs or /ipns. */
export interface Located {
  readonly cid: string;
  readonly type: "file" | "directory";
  readonly size: number;
  readonly total: number;
  readonly links: number;
  /** The last segment of the path. */
  readonly name: string;
}

/** @throws NodeError, {HttpError} 404 */
export async function locate(node: NodeModule, path: string, signal: AbortSignal): Promise<Located> {
  const how = { signal: within(signal, OPEN_SECONDS) };
  const known = path.startsWith("/ipns/") ? await resolved(node, path, how) : path;
  try {
    const { cid, type, size, cumulativeSize: total, blocks: links } = await node.files.stat(known, how);
    return {
      cid: cid.toString(),
      type,
      size,
      total,
      links,
      name: path.split("/").findLast((part) => part !== "") ?? "files",
    };
  } catch (error) {
    if (isFailure(error, "FILE_NOT_FOUND", "NO_LINK")) throw new HttpError(404, `Nothing exists at ${path}`);
    throw error;
  }
}

async function resolved(node: NodeModule, path: string, how: { signal: AbortSignal }): Promise<string> {
  const { cid, remainder } = await node.lowLevel.resolve(path, how);
  if (remainder.length > 0) throw new HttpError(400, `${path} leads into a block, and not to a file`);
  return `/ipfs/${cid}`;
}

/** @throws NodeError, {HttpError} 400 for a directory, 404 */
export async function fileResponse(
  node: NodeModule,
  { path, as, request, signal }: { path: string; as: Shown; request: HttpRequest; signal: AbortSignal },
): Promise<ResponseFields> {
  const { cid, type, size, name } = await locate(node, path, signal);
  if (type === "directory") throw new HttpError(400, `${path} is a directory: download it as tar or CAR`);
  const etag = `"${cid}"`;
  const headers: ResponseHeaders = { ...guarded, ...described(name, as), etag, accept_ranges: "bytes" };
  // A CID identifies its bytes permanently, so it is a strong validator, and no date is needed.
  const known = { etag, modified: Number.NaN };
  const status = precondition(request, known);
  if (status !== undefined) return { status_code: status, headers, body: "" };
  const range = rangeOf(request, size, known);
  if (range === "unsatisfiable")
    return { status_code: 416, headers: { ...headers, content_range: `bytes */${size}` }, body: "" };
  const { first, last } = range ?? { first: 0, last: size - 1 };
  const length = last - first + 1;
  headers.content_length = length;
  if (range !== undefined) headers.content_range = `bytes ${first}-${last}/${size}`;
  const body =
    length === 0 ? "" : await opened(signal, (how) => node.cat(`/ipfs/${cid}`, { ...how, offset: first, length }));
  return { status_code: range === undefined ? 200 : 206, headers, body };
}

const isContent = (path: string) => /^\/ip[fn]s\//.test(path);

/** @throws NodeError, {HttpError} 404 */
export async function tarResponse(node: NodeModule, path: string, signal: AbortSignal): Promise<ResponseFields> {
  const { cid, name } = await locate(node, path, signal);
  // The archive gets the name of the content, which is looked up in its parent directory.
  const above = path.replace(/\/[^/]*\/*$/, "");
  const parent = isContent(path) || above === "" ? undefined : await locate(node, above, signal);
  const from = parent === undefined ? `/ipfs/${cid}` : `/ipfs/${parent.cid}/${name}`;
  const body = await opened(signal, (how) => node.get(from, { ...how, archive: true }));
  return {
    headers: { ...guarded, ...attachment(`${name}.tar`), content_type: "application/x-tar", etag: `"${cid}.tar"` },
    body,
  };
}

/** @throws NodeError, {HttpError} 404 */
export async function carResponse(node: NodeModule, path: string, signal: AbortSignal): Promise<ResponseFields> {
  const { cid, name } = await locate(node, path, signal);
  const body = await opened(signal, (how) => node.dag.export(cid, how));
  const headers = { ...guarded, ...attachment(`${name}.car`), etag: `"${cid}.car"` };
  return { headers: { ...headers, content_type: "application/vnd.ipld.car" }, body };
}

function described(name: string, as: Shown): ResponseHeaders {
  const media: Media = as === "text" ? textMedia : mediaOf(name);
  const isSaved = as === "download" || !media.isShown;
  return {
    // Content that is shown as text here may be a page elsewhere. A browser that opens the saved
    // file only looks at its name.
    content_type: isSaved && media === textMedia ? BYTES : media.type,
    content_disposition: disposition(isSaved ? "attachment" : "inline", name),
  };
}

interface Opening extends PooledBody {
  readonly opened: Promise<void>;
}

/** Resolves when the first bytes have arrived, so that an earlier error still gets a status. */
async function opened(
  signal: AbortSignal,
  open: (how: { readonly signal: AbortSignal }) => AsyncIterable<Uint8Array> & Opening,
): Promise<PooledBody> {
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new DOMException("The first bytes did not arrive", "TimeoutError")),
    OPEN_SECONDS * 1000,
  );
  try {
    const stream = open({ signal: AbortSignal.any([signal, late.signal]) });
    await stream.opened;
    return stream;
  } finally {
    clearTimeout(timer);
  }
}

/** Returns one range of bytes. A request for several ranges gets the whole content. */
function rangeOf(request: HttpRequest, size: number, known: Validators): ByteRange | "unsatisfiable" | undefined {
  const range = request.header("range");
  if (range === undefined || !rangeApplies(request.header("if-range"), known)) return undefined;
  const ranges = parseRanges(range, size);
  if (ranges === undefined || ranges.length > 1) return undefined;
  return ranges[0] ?? "unsatisfiable";
}
