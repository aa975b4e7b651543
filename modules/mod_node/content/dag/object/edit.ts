/** Changed copies of DAGs of dag-pb nodes, for `object patch`. */
import type { CID } from "multiformats/cid";
import type { PbLink } from "../../../formats/dag_pb/dag_pb.ts";
import { decodeUnixfs } from "../../../formats/unixfs/format.ts";
import type { Block } from "../../../storage/blockstore/store.ts";
import { failure } from "../../../util/errors.ts";
import type { ReadBlock } from "../reader.ts";
import { blockOf, decodeObject, type ObjectNode, pbBlock, readObject, sizeOf } from "./node.ts";

/** New blocks, children before parents; the last one is the root. */
export type EditedBlocks = readonly [Block, ...Block[]];

const noLink = () => failure("LINK_NOT_FOUND", { reason: "no link by that name" });

export interface Child {
  readonly cid: CID;
  /** Tsize of the link to the node. */
  readonly size: number;
}

/**
 * Replaces the links of that name at a path by a new one. `create` creates missing nodes of the
 * path.
 *
 * @throws NodeError with the reference's text
 */
export async function withLink(
  root: ObjectNode,
  path: string,
  child: Child,
  read: ReadBlock,
  create?: () => Promise<ObjectNode>,
): Promise<EditedBlocks> {
  const names = path.split("/");
  const last = names.pop() as string;
  const way = await descend(root, names, read, create);
  if (last === "") throw failure("ARGUMENT_INVALID", { reason: "cannot create link with no name" });
  return rebuild(way, names, (node) => ({ ...node, links: replaced(node.links, { name: last, ...child }) }));
}

/**
 * Checks a node before links are added or removed. @throws NodeError with the text of Kubo 0.43
 * unless it is a plain UnixFS directory
 */
export function requireDirectory({ data }: ObjectNode, adds: boolean): void {
  const what = adds ? "add named links to" : "remove links from";
  const type = unixfsTypeOf(data);
  if (type === "Directory") return;
  if (type === undefined) {
    throw failure("NODE_NOT_EDITABLE", {
      reason: `cannot ${what} a non-UnixFS dag-pb node; pass --allow-non-unixfs to skip validation`,
    });
  }
  if (type === "HAMTShard") {
    throw failure("NODE_NOT_EDITABLE", {
      reason:
        `cannot ${adds ? "add links to" : what} a HAMTShard at the dag-pb level (would corrupt the HAMT bitfield); ` +
        `use 'ipfs files${adds ? "' commands" : " rm'"} instead, or pass --allow-non-unixfs to override`,
    });
  }
  throw failure("NODE_NOT_EDITABLE", {
    reason:
      `cannot ${what} a UnixFS ${type} node, only Directory nodes support link ${adds ? "addition" : "removal"} ` +
      "at the dag-pb level (see https://specs.ipfs.tech/unixfs/)",
  });
}

function unixfsTypeOf(data: Uint8Array | undefined): string | undefined {
  if (data === undefined || data.length === 0) return undefined;
  try {
    return decodeUnixfs(data).type;
  } catch {
    return undefined;
  }
}

/** Removes the links at a path. @throws NodeError with the reference's text */
export async function withoutLink(root: ObjectNode, path: string, read: ReadBlock): Promise<EditedBlocks> {
  const names = path.split("/");
  const last = names.pop() as string;
  const way = await descend(root, names, read);
  return rebuild(way, names, (node) => {
    const links = node.links.filter(({ name }) => name !== last);
    if (links.length === node.links.length) throw noLink();
    return { ...node, links };
  });
}

/** Returns the root and the nodes along the names. */
async function descend(
  root: ObjectNode,
  names: readonly string[],
  read: ReadBlock,
  create?: () => Promise<ObjectNode>,
): Promise<[ObjectNode, ...ObjectNode[]]> {
  const way: [ObjectNode, ...ObjectNode[]] = [root];
  let node = root;
  for (const name of names) {
    const link = node.links.find((each) => each.name === name);
    if (link === undefined && create === undefined) throw noLink();
    node = link === undefined ? await (create as () => Promise<ObjectNode>)() : await readObject(link.cid, read);
    way.push(node);
  }
  return way;
}

/** Changes the last node of a path, and the links in every node above it. */
async function rebuild(
  way: readonly [ObjectNode, ...ObjectNode[]],
  names: readonly string[],
  change: (node: ObjectNode) => ObjectNode,
): Promise<EditedBlocks> {
  let block = await blockOf(change(way.at(-1) as ObjectNode));
  const blocks: [Block, ...Block[]] = [block];
  for (let at = way.length - 2; at >= 0; at -= 1) {
    const { cid, bytes } = block;
    const link = { name: names[at] as string, cid, size: sizeOf(cid, bytes) };
    const node = way[at] as ObjectNode;
    block = await blockOf({ ...node, links: replaced(node.links, link) });
    blocks.push(block);
  }
  return blocks;
}

const replaced = (links: readonly PbLink[], link: PbLink): PbLink[] => [
  ...links.filter(({ name }) => name !== link.name),
  link,
];

/** Replaces the data of the root. */
export async function withData(root: ObjectNode, data: Uint8Array): Promise<EditedBlocks> {
  return [await blockOf({ ...root, data })];
}

/** Returns a node that is not stored yet. */
export async function newObject(bytes: Uint8Array): Promise<ObjectNode> {
  const { cid } = await pbBlock(bytes);
  return decodeObject(cid, bytes);
}
