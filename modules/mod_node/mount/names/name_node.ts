/** What the kernel knows of the name path: nodes, and where they stand. */
import type { NamespacePath } from "../../content/mfs/path.ts";
import { fileSize, type UnixfsNode } from "../../content/unixfs/node.ts";
import type { Attributes, Kind } from "../fuse/wire.ts";
import type { OwnTree } from "./own_tree.ts";
import type { SequentialWrite } from "./sequential_write.ts";

const modes: Readonly<Record<Kind, number>> = { directory: 0o555, file: 0o666, symlink: 0o777 };

/** A node of the mount. What it stands for is `file`, `target`, or a directory. */
export interface NameNode {
  readonly id: number;
  readonly kind: Kind;
  /** Where it stands; the root of the mount stands nowhere. */
  parent: NameNode | undefined;
  name: string;
  /** Missing at the root and at its links. */
  readonly tree: OwnTree | undefined;
  readonly target: string | undefined;
  file: UnixfsNode | undefined;
  /** Counts what `file` was. */
  version: number;
  /** It has no name any more. */
  unlinked: boolean;
  writing: SequentialWrite | undefined;
  /** What was written before. */
  settling: Promise<void> | undefined;
  /** Why what was written is lost, until somebody asks. */
  failure: Error | undefined;
}

/** What a name leads to. */
export type Found = Pick<NameNode, "kind"> & Partial<Pick<NameNode, "file" | "target" | "tree">>;

/** Of a place, in the table of nodes. */
export const keyOf = (parent: NameNode, name: string): string => `${parent.id}/${name}`;

export function nodeOf(id: number, parent: NameNode | undefined, name: string, found: Found): NameNode {
  const { kind, file, target, tree } = found;
  const fresh = { version: 0, unlinked: false, writing: undefined, settling: undefined, failure: undefined };
  return { id, parent, name, kind, file, target, tree, ...fresh };
}

/** What the kernel is told of it. */
export function attributesOf({ id, kind, parent, file, target, writing }: NameNode): Attributes {
  const stored = target === undefined ? (file === undefined ? 0 : fileSize(file)) : Buffer.byteLength(target);
  const size = Math.max(stored, writing?.end ?? 0);
  return { id, kind, mode: parent === undefined ? 0o111 : modes[kind], size };
}

/** In the tree that the node belongs to. */
export function pathOf(node: NameNode): NamespacePath {
  const segments: string[] = [];
  for (let at: NameNode | undefined = node; at?.parent?.tree !== undefined; at = at.parent) segments.unshift(at.name);
  return { text: `/${segments.join("/")}`, segments, inside: false };
}
