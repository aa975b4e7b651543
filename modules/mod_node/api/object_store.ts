/** Reads, changes and stores dag-pb nodes, for the `object` commands. */
import type { CID } from "multiformats/cid";
import { putBlocks } from "../content/adder/put_blocks.ts";
import {
  type EditedBlocks,
  newObject,
  requireDirectory,
  withData,
  withLink,
  withoutLink,
} from "../content/dag/object/edit.ts";
import { decodeObject, sizeOf } from "../content/dag/object/node.ts";
import { decodePb, encodePb, type PbLink } from "../formats/dag_pb/dag_pb.ts";
import type { DagPbLink } from "../formats/dag_pb/pb_object.ts";
import { linksOf, namedLinks } from "../formats/ipld/links.ts";
import { encodeUnixfs } from "../formats/unixfs/format.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { readBlockBody, requireSize } from "../storage/blockstore/make_block.ts";
import { type ByteSource, type CallOptions, type IpfsPath, pathText, piecesOf, readOptions } from "./common.ts";

/** A change of a node. */
export type ObjectEdit =
  | { readonly addLink: string; readonly target: IpfsPath; readonly create?: boolean | undefined }
  | { readonly rmLink: string }
  | { readonly appendData: ByteSource }
  | { readonly setData: ByteSource };

export interface ObjectEditOptions extends CallOptions {
  /**
   * Refuse to add or remove links of nodes that are not plain UnixFS directories; false by default.
   */
  readonly onlyDirectories?: boolean | undefined;
  /** Maximum size of a new node in bytes; unlimited by default. */
  readonly maxBlock?: number | undefined;
}

export interface StoredObject {
  readonly cid: CID;
  readonly links: readonly Required<DagPbLink>[];
}

export const emptyDirectory = encodePb({ data: encodeUnixfs({ type: "Directory" }), links: [] });

export function objectStore(node: LowLevelNode) {
  /** Reads the block at a path; the rest of the path within the block is ignored. */
  async function blockAt(path: IpfsPath, options: CallOptions) {
    const how = readOptions(options);
    const { cid } = await node.resolve(pathText(path), how);
    return { cid, bytes: await node.reader(how)(cid) };
  }

  async function nodeAt(path: IpfsPath, options: CallOptions) {
    const { cid, bytes } = await blockAt(path, options);
    return decodeObject(cid, bytes);
  }

  async function linksAt(path: IpfsPath, options: CallOptions = {}) {
    const { cid, bytes } = await blockAt(path, options);
    return { cid, links: namedLinks(cid, bytes).map(linkJs) };
  }

  /** Stores new blocks; the last of them is the result. */
  async function stored(
    blocks: EditedBlocks,
    {
      pin,
      maxBlock,
      ...options
    }: CallOptions & { readonly pin?: boolean | undefined } & Pick<ObjectEditOptions, "maxBlock">,
  ): Promise<StoredObject> {
    for (const { bytes } of blocks) requireSize(bytes, maxBlock);
    await putBlocks(node, blocks, { pin, ...readOptions(options) });
    const { cid, bytes } = blocks.at(-1) as EditedBlocks[0];
    return { cid, links: decodePb(bytes).links.map(linkJs) };
  }

  async function edit(root: IpfsPath, change: ObjectEdit, options: ObjectEditOptions = {}): Promise<StoredObject> {
    const base = await blockAt(root, options);
    const read = node.reader(readOptions(options));
    if (options.onlyDirectories === true) requireDirectory(decodeObject(base.cid, base.bytes), "addLink" in change);
    if ("addLink" in change) {
      const { cid, bytes } = await blockAt(change.target, options);
      linksOf(cid, bytes);
      const child = { cid, size: sizeOf(cid, bytes) };
      const create = change.create === true ? () => newObject(emptyDirectory) : undefined;
      return stored(await withLink(decodeObject(base.cid, base.bytes), change.addLink, child, read, create), options);
    }
    const before = decodeObject(base.cid, base.bytes);
    if ("rmLink" in change) return stored(await withoutLink(before, change.rmLink, read), options);
    const appends = "appendData" in change;
    const given = await readBlockBody(piecesOf(appends ? change.appendData : change.setData));
    const data = appends ? Buffer.concat([before.data ?? new Uint8Array(), given]) : given;
    return stored(await withData(before, data), options);
  }

  return { blockAt, nodeAt, linksAt, stored, edit };
}

export const linkJs = ({ name, cid, size }: PbLink): Required<DagPbLink> => ({ Name: name, Hash: cid, Tsize: size });
