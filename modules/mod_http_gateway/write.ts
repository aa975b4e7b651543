/** New content by POST, PUT and DELETE, as go-ipfs 0.9 takes it where `Gateway.Writable` is on. */
import { type EditTreeOptions, NodeError, type NodeModule, parseCid, putIntoTree, removeFromTree } from "modhost/node";
import { isSameOrigin } from "../../core/http/index.ts";
import type { HttpRequest, ResponseFields } from "../../core/types.ts";
import { Refusal, tooLate } from "./errors/refusal.ts";
import { escapedPath, type Place } from "./place.ts";
import type { Reading } from "./reading.ts";
import type { GatewaySettings } from "./settings.ts";

type Cid = ReturnType<typeof parseCid>;
type Added = Awaited<ReturnType<NodeModule["add"]>>;

export const isWriting = ({ method }: Pick<HttpRequest, "method">): boolean =>
  method === "POST" || method === "PUT" || method === "DELETE";

export interface WriteAsked {
  readonly node: NodeModule;
  readonly request: HttpRequest;
  readonly settings: GatewaySettings;
  /** What is to be changed; not asked for by POST. */
  readonly place: () => Promise<Place>;
  /** Its directories may be elsewhere. */
  readonly reading: () => Reading;
}

/**
 * POST adds the body as a file, wherever it goes. PUT puts it into the directory that the path names, and DELETE takes an entry
 * out: both give a new root. Nothing is pinned. @throws {Refusal}
 */
export async function writeAnswer(asked: WriteAsked): Promise<ResponseFields> {
  const { node, request, settings } = asked;
  requireOwnPage(request, settings);
  if (!node.isOpen) await node.open();
  if (request.method === "POST") return created(settings, (await add(asked)).cid, []);
  const { namespace, root, below = [], segments } = await asked.place();
  if (namespace !== "ipfs") throw refused(400, "failed to parse the path: only ipfs paths supported");
  const path = [...below, ...segments];
  if (path.length === 0) throw refused(400, "empty path");
  // The body first: it is not known before what waits for peers, and what for the client.
  const link = request.method === "PUT" ? await add(asked) : undefined;
  const reading = asked.reading();
  try {
    const { blocks, repo } = node.lowLevel;
    const sharded = repo.config.value("Experimental.ShardingEnabled");
    const options: EditTreeOptions = { path, read: reading.readPath, blocks, sharded };
    const cid = parseCid(root);
    if (link !== undefined) return created(settings, await putIntoTree(cid, link, options), path);
    return created(settings, await removeFromTree(cid, options), path.slice(0, -1));
  } catch (cause) {
    if (reading.isLate) throw tooLate(request.path, cause);
    if (!NodeError.is(cause)) throw cause;
    if (cause.code === undefined)
      throw refused(/ is not a directory$/.test(cause.message) ? 400 : 500, cause.message, cause);
    if (cause.code === "FILE_NOT_FOUND") throw refused(500, `failed to look up parent: ${cause.message}`, cause);
    throw cause;
  } finally {
    reading.end();
  }
}

/** @throws {Refusal} 504 where it takes longer than an answer may */
async function add({ node, request, settings: { totalTime } }: WriteAsked): Promise<Added> {
  const late = totalTime > 0 ? AbortSignal.timeout(totalTime) : undefined;
  const signal = late === undefined ? request.signal : AbortSignal.any([request.signal, late]);
  try {
    return await node.add({ content: request.body_stream }, { pin: false, signal });
  } catch (cause) {
    throw late?.aborted === true ? tooLate(request.path, cause) : cause;
  }
}

function created({ headers }: GatewaySettings, cid: Cid, path: readonly string[]): ResponseFields {
  const location = escapedPath(["/ipfs", `${cid}`, ...path].join("/"));
  return { status_code: 201, headers: { ...headers, ipfs_hash: `${cid}`, location }, body: "" };
}

/** Any page can send a POST without asking first: of other origins those may that the operator lets. @throws {Refusal} 403 */
function requireOwnPage(request: HttpRequest, { headers }: GatewaySettings): void {
  const { method, url } = request;
  if (isSameOrigin(request, url.host ?? request.headers.host)) return;
  if (`${headers.access_control_allow_methods}`.split(/[\s,]+/).includes(method)) return;
  throw refused(
    403,
    `pages of other origins may ${method} where Access-Control-Allow-Methods of Gateway.HTTPHeaders has it`,
  );
}

const refused = (status: number, why: string, cause?: unknown): Refusal =>
  new Refusal(status, `WritableGateway: ${why}`, { cause });
