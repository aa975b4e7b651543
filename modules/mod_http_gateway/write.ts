/** Creates new content by POST, PUT and DELETE, as go-ipfs 0.9 does if `Gateway.Writable` is on. */
import { type EditTreeOptions, NodeError, type NodeModule, parseCid, putIntoTree, removeFromTree } from "modhost/node";
import { isSameOrigin } from "../../core/http/index.ts";
import type { HttpRequest, ResponseFields } from "../../core/types.ts";
import { type ContentTarget, escapedPath } from "./content_target.ts";
import { isPlain, Refusal, tooLate } from "./errors/refusal.ts";
import type { Reading } from "./reading.ts";
import type { GatewaySettings } from "./settings.ts";

type Cid = ReturnType<typeof parseCid>;
type Added = Awaited<ReturnType<NodeModule["add"]>>;

export const isWriting = ({ method }: Pick<HttpRequest, "method">): boolean =>
  method === "POST" || method === "PUT" || method === "DELETE";

export interface WriteCall {
  readonly node: NodeModule;
  readonly request: HttpRequest;
  readonly settings: GatewaySettings;
  /** Returns the content to change. POST does not call it. */
  readonly target: () => Promise<ContentTarget>;
  /** Reads the directories of the target, which other nodes may have. */
  readonly reading: () => Reading;
}

/**
 * POST adds the body as a file, whatever the path is. PUT adds it to the directory that the path
 * names, and DELETE removes an entry. Both create a new root. Nothing is pinned. @throws {Refusal}
 */
export async function writeResponse(call: WriteCall): Promise<ResponseFields> {
  const { node, request, settings } = call;
  requireOwnPage(request, settings);
  if (!node.isOpen) await node.open();
  if (request.method === "POST") return created(settings, (await add(call)).cid, []);
  const { namespace, root, below = [], segments } = await call.target();
  if (namespace !== "ipfs") throw refused(400, "failed to parse the path: only ipfs paths supported");
  const path = [...below, ...segments];
  if (path.length === 0) throw refused(400, "empty path");
  // The body is read first. Only after that is a wait certain to be for peers and not for the
  // client.
  const link = request.method === "PUT" ? await add(call) : undefined;
  const reading = call.reading();
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
    if (cause.code === "NOT_A_DIRECTORY") throw refused(400, cause.message, cause);
    if (isPlain(cause)) throw refused(500, cause.message, cause);
    if (cause.code === "FILE_NOT_FOUND") throw refused(500, `failed to look up parent: ${cause.message}`, cause);
    throw cause;
  } finally {
    reading.end();
  }
}

/** @throws {Refusal} 504 if it takes longer than a response may take */
async function add({ node, request, settings: { totalTime } }: WriteCall): Promise<Added> {
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

/**
 * Any page can send a POST without a preflight request, so only origins that the operator allows
 * may. @throws {Refusal} 403
 */
function requireOwnPage(request: HttpRequest, { headers }: GatewaySettings): void {
  const { method, url } = request;
  if (isSameOrigin(request, url.host ?? request.header("host"))) return;
  if (`${headers.access_control_allow_methods}`.split(/[\s,]+/).includes(method)) return;
  throw refused(
    403,
    `pages of other origins may only ${method} if Access-Control-Allow-Methods of Gateway.HTTPHeaders contains it`,
  );
}

const refused = (status: number, why: string, cause?: unknown): Refusal =>
  new Refusal(status, `WritableGateway: ${why}`, { cause });
