/** The nodes of the /ipns mount. */
import type { NamespacePath } from "../../content/mfs/path.ts";
import { fileSize, type UnixfsNode } from "../../content/unixfs/node.ts";
import type { ModeAndTime } from "../../formats/unixfs/format.ts";
import type { Attributes, Kind } from "../fuse/wire.ts";
import { modeAndTime } from "../ipfs_files.ts";
import type { OwnTree } from "./own_tree.ts";
import type { SequentialWrite } from "./sequential_write.ts";

const modes: Readonly<Record<Kind, number>> = { directory: 0o555, file: 0o666, symlink: 0o777 };

/** A node of the mount: a file with `file`, a symlink with `target`, or a directory. */
export interface NameNode {
  readonly id: number;
  readonly kind: Kind;
  /** Parent and name of the node. The root of the mount has no parent. */
  parent: NameNode | undefined;
  name: string;
  /** Undefined for the root and for its symlinks. */
  readonly tree: OwnTree | undefined;
  readonly target: string | undefined;
  file: UnixfsNode | undefined;
  /** Mode and time of a directory. */
  facts: ModeAndTime | undefined;
  /** Counts the changes of `file`. */
  version: number;
  /** Whether it no longer has a name. */
  unlinked: boolean;
  writing: SequentialWrite | undefined;
  /** Resolves when earlier writes are stored. */
  settling: Promise<void> | undefined;
  /** Why a write was lost, until it is reported to a caller. */
  failure: Error | undefined;
}

/** The node of a name. */
export type NameTarget = Pick<NameNode, "kind"> & Partial<Pick<NameNode, "file" | "facts" | "target" | "tree">>;

/** Key of an entry in the table of nodes. */
export const keyOf = (parent: NameNode, name: string): string => `${parent.id}/${name}`;

export function nodeOf(id: number, parent: NameNode | undefined, name: string, found: NameTarget): NameNode {
  const { kind, file, facts, target, tree } = found;
  const fresh = { version: 0, unlinked: false, writing: undefined, settling: undefined, failure: undefined };
  return { id, parent, name, kind, file, facts, target, tree, ...fresh };
}

/** Returns the attributes for the kernel. */
export function attributesOf({ id, kind, parent, file, facts, target, writing }: NameNode): Attributes {
  const stored = target === undefined ? (file === undefined ? 0 : fileSize(file)) : Buffer.byteLength(target);
  const size = Math.max(stored, writing?.end ?? 0);
  if (parent === undefined) return { id, kind, mode: 0o111, size };
  return { id, kind, size, ...modeAndTime(kind, file?.unixfs ?? facts, modes) };
}

/** Returns the path within the node's tree. */
export function pathOf(node: NameNode): NamespacePath {
  const segments: string[] = [];
  for (let at: NameNode | undefined = node; at?.parent?.tree !== undefined; at = at.parent) segments.unshift(at.name);
  return { text: `/${segments.join("/")}`, segments, trailingSlash: false };
}
