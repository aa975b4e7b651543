/** The older listing of directories. */
import type { CID } from "multiformats/cid";
import type { ReadBlock } from "../content/dag/reader.ts";
import { fileSize } from "../content/unixfs/node.ts";
import { openNode } from "../content/unixfs/open.ts";
import { dagPb } from "../formats/cid/codecs.ts";
import { compareNames } from "../formats/dag_pb/dag_pb.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { mapConcurrent } from "../util/async/map_concurrent.ts";
import { NodeError } from "../util/errors.ts";
import { type CallOptions, type IpfsPath, listOf, pathText, reading } from "./common.ts";

export interface FileLsLink {
  readonly name: string;
  readonly cid: CID;
  /** Bytes of a file's contents, or else of all blocks. */
  readonly size: number;
  readonly type: string;
}

export interface FileLsObject {
  readonly cid: CID;
  readonly size: number;
  /** `File` or `Directory`. */
  readonly type: string;
  /** Null for a file. */
  readonly links: readonly FileLsLink[] | null;
}

export interface FileLsResult {
  /** What each path led to, in order of the paths. */
  readonly arguments: Readonly<Record<string, CID>>;
  /** By CID, in order of the texts of these. */
  readonly objects: Readonly<Record<string, FileLsObject>>;
}

export interface FileApi {
  /** Files and plain directories; `ls` does more. @throws NodeError for symlinks, sharded directories and raw blocks */
  ls(paths: IpfsPath | readonly IpfsPath[], options?: CallOptions): Promise<FileLsResult>;
}

/** Children that are looked at at the same time. */
const MAX_CHILDREN = 16;

export function fileApi(node: LowLevelNode): FileApi {
  return {
    async ls(paths, options = {}) {
      const how = reading(options);
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

/** A node of a tree, but no raw leaf: this listing is older than those. */
async function oldNode(cid: CID, read: ReadBlock) {
  const bytes = await read(cid);
  if (cid.code !== dagPb) throw new NodeError("expected protobuf dag node");
  return openNode(cid, bytes);
}

async function objectOf(cid: CID, read: ReadBlock): Promise<FileLsObject> {
  const node = await oldNode(cid, read);
  const { type } = node.unixfs;
  const facts = { cid, size: type === "Directory" ? 0 : fileSize(node), type };
  if (type === "File") return { ...facts, links: null };
  if (type === "HAMTShard") throw new NodeError("cannot list large directories yet");
  if (type === "Symlink") throw new NodeError("cannot list symlinks yet");
  if (type !== "Directory") throw new NodeError(`unrecognized type: ${type}`);
  const links = mapConcurrent(node.links, MAX_CHILDREN, async ({ name, cid: child, size }) => {
    const inner = await oldNode(child, read);
    const { type } = inner.unixfs;
    return { name, cid: child, size: type === "File" ? fileSize(inner) : size, type };
  });
  return { ...facts, links: await Array.fromAsync(links) };
}

const sorted = <T>(found: ReadonlyMap<string, T>): Record<string, T> =>
  Object.fromEntries([...found].sort(([one], [other]) => compareNames(one, other)));
