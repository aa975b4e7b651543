/** The older command for listing directories; `ls` does more. */
import type { CID } from "multiformats/cid";
import type { ReadBlock } from "../content/dag/reader.ts";
import { fileSize } from "../content/unixfs/node.ts";
import { openNode } from "../content/unixfs/open.ts";
import { dagPb } from "../formats/cid/codecs.ts";
import { compareNames } from "../formats/dag_pb/dag_pb.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { mapConcurrent } from "../util/async/map_concurrent.ts";
import { failure } from "../util/errors.ts";
import { type CallOptions, type IpfsPath, listOf, pathText, readOptions } from "./common.ts";

export interface FileLsLink {
  readonly name: string;
  readonly cid: CID;
  /** Size of a file's content in bytes; for a directory, the size of all its blocks. */
  readonly size: number;
  readonly type: string;
}

export interface FileLsObject {
  readonly cid: CID;
  readonly size: number;
  /** `File` or `Directory`. */
  readonly type: string;
  /** The entries of a directory; null for a file. */
  readonly links: readonly FileLsLink[] | null;
}

export interface FileLsResult {
  /** The resolved path for each argument, in the order of the arguments. */
  readonly arguments: Readonly<Record<string, CID>>;
  /** The objects by CID, sorted by the text of the CIDs. */
  readonly objects: Readonly<Record<string, FileLsObject>>;
}

export interface FileApi {
  /**
   * Lists files and plain directories. @throws NodeError for symlinks, sharded directories and raw
   * blocks
   */
  ls(paths: IpfsPath | readonly IpfsPath[], options?: CallOptions): Promise<FileLsResult>;
}

/** Number of children that are read concurrently. */
const MAX_CHILDREN = 16;

export function fileApi(node: LowLevelNode): FileApi {
  return {
    async ls(paths, options = {}) {
      const how = readOptions(options);
      const read = node.reader(how);
      const given = new Map<string, CID>();
      const objects = new Map<string, FileLsObject>();
      for (const path of listOf(paths).map(pathText)) {
        const { cid } = await node.resolve(path, how);
        given.set(path, cid);
        if (!objects.has(cid.toString())) objects.set(cid.toString(), await objectOf(cid, read));
      }
      return { arguments: sorted(given), objects: sorted(objects) };
    },
  };
}

/** Opens a UnixFS node. Raw leaves are refused because this command predates them. */
async function oldNode(cid: CID, read: ReadBlock) {
  const bytes = await read(cid);
  if (cid.code !== dagPb) throw failure("NOT_DAG_PB");
  return openNode(cid, bytes);
}

async function objectOf(cid: CID, read: ReadBlock): Promise<FileLsObject> {
  const node = await oldNode(cid, read);
  const { type } = node.unixfs;
  const facts = { cid, size: type === "Directory" ? 0 : fileSize(node), type };
  if (type === "File") return { ...facts, links: null };
  if (type === "HAMTShard") throw failure("UNIXFS_TYPE_UNSUPPORTED", { reason: "cannot list large directories yet" });
  if (type === "Symlink") throw failure("UNIXFS_TYPE_UNSUPPORTED", { reason: "cannot list symlinks yet" });
  if (type !== "Directory") throw failure("UNIXFS_TYPE_UNSUPPORTED", { reason: `unrecognized type: ${type}` });
  const links = mapConcurrent(node.links, MAX_CHILDREN, async ({ name, cid: child, size }) => {
    const inner = await oldNode(child, read);
    const { type } = inner.unixfs;
    return { name, cid: child, size: type === "File" ? fileSize(inner) : size, type };
  });
  return { ...facts, links: await Array.fromAsync(links) };
}

const sorted = <T>(found: ReadonlyMap<string, T>): Record<string, T> =>
  Object.fromEntries([...found].sort(([one], [other]) => compareNames(one, other)));
