/**
 * Resolves a content path to the block that it leads to, and the rest of the path inside that
 * block.
 */
import type { CID } from "multiformats/cid";
import { dagPb, raw } from "../../formats/cid/codecs.ts";
import { detachedCid } from "../../formats/cid/detached.ts";
import { parseCid } from "../../formats/cid/text.ts";
import { member, type Value, wrongKind } from "../../formats/dag_cbor/value.ts";
import { decodePb } from "../../formats/dag_pb/dag_pb.ts";
import { isCid, valueWithTurns } from "../../formats/ipld/data_model.ts";
import { failure } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { type ReadBlock, readSoon } from "../dag/reader.ts";
import { lookup } from "../unixfs/list.ts";
import { unixfsNode } from "../unixfs/node.ts";
import type { ContentPath, Namespace } from "./path.ts";

export interface Resolved {
  readonly namespace: Exclude<Namespace, "ipns">;
  /** The block that the path leads to. */
  readonly cid: CID;
  /** The rest of the path inside that block: keys and indexes of a CBOR node. */
  readonly remainder: readonly string[];
  /**
   * The block of the root, then the block of each segment, as the links name them, without the
   * inner nodes of shards. A value inside a block has the CID of that block.
   */
  readonly roots: readonly CID[];
}

/**
 * The next step of a path: a link that consumes components of the path, or a value inside the
 * block.
 */
type PathStep = { readonly cid: CID; readonly used: number } | "inside";

const noLink = (name: string, cid: CID, later?: string) =>
  failure("NO_LINK", { name: quote(name), cid: String(cid), ...(later !== undefined && { later }) });

/**
 * Follows one name. Below /ipfs a sharded directory is one directory; below /ipld every link has
 * its stored name.
 */
async function stepPb(
  cid: CID,
  bytes: Uint8Array,
  name: string,
  read: ReadBlock,
  namespace: Namespace,
): Promise<PathStep> {
  const tree = namespace === "ipfs" ? unixfsNode(cid, bytes) : undefined;
  const link =
    tree?.unixfs.type === "HAMTShard"
      ? await lookup(tree, name, read)
      : (tree?.links ?? decodePb(bytes).links).find((candidate) => candidate.name === name);
  if (link === undefined) throw noLink(name, cid);
  return { cid: link.cid, used: 1 };
}

function stepInside(root: Value, path: readonly string[]): PathStep {
  // If the node is only a link, the link is followed automatically.
  if (isCid(root)) return { cid: root, used: 0 };
  let value: Value = root;
  for (const [at, name] of path.entries()) {
    value = member(value, name);
    if (isCid(value)) return { cid: value, used: at + 1 };
  }
  return "inside";
}

async function step(cid: CID, path: readonly string[], read: ReadBlock, namespace: Namespace): Promise<PathStep> {
  const coming = readSoon(read, cid);
  const bytes = coming instanceof Promise ? await coming : coming;
  if (cid.code === dagPb) return stepPb(cid, bytes, path[0] as string, read, namespace);
  const value = await valueWithTurns(cid, bytes);
  if (value !== undefined) return stepInside(value, path);
  if (cid.code === raw) throw noLink(path[0] as string, cid, wrongKind("bytes"));
  throw failure("CODEC_UNREADABLE", { codec: cid.code });
}

/**
 * Follows a path of /ipfs or /ipld. The path of a name must be resolved to one of these first. The
 * last block is not read unless the path continues inside it.
 *
 * @throws NodeError when there is no such link; what `read` rejects with
 */
export async function resolvePath(path: ContentPath, read: ReadBlock): Promise<Resolved> {
  const { namespace } = path;
  if (namespace === "ipns")
    throw failure("ARGUMENT_INVALID", { reason: `${path.text} is a name: resolve it to a path first` });
  return followNames(parseCid(path.root), path.segments, read, namespace);
}

/**
 * Like `resolvePath`, from a block on. Blocks are read in the order of the path, including inner
 * nodes of shards.
 */
export async function followNames(
  root: CID,
  names: readonly string[],
  read: ReadBlock,
  namespace: Resolved["namespace"] = "ipfs",
): Promise<Resolved> {
  const roots = [root];
  let cid = root;
  let rest = names;
  while (rest.length > 0) {
    const next = await step(cid, rest, read, namespace);
    if (next === "inside") break;
    for (let inner = 1; inner < next.used; inner += 1) roots.push(cid);
    cid = detachedCid(next.cid);
    if (next.used > 0) roots.push(cid);
    rest = rest.slice(next.used);
  }
  for (const _ of rest) roots.push(cid);
  return { namespace, cid, remainder: rest, roots };
}
