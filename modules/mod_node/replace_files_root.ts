/** Gives the mutable namespace (MFS) of a repo that no node has open another root. */
import type { CID } from "multiformats/cid";
import type { ReplacedRoot } from "./content/mfs/namespace.ts";
import { parseCid } from "./formats/cid/text.ts";
import type { NodeOptions } from "./low_level_node.ts";
import { openNode } from "./open.ts";
import { NodeError } from "./util/errors.ts";

export interface FilesRootOptions extends Pick<NodeOptions, "data" | "onNotice"> {
  /** A directory that is in the repo; by default an empty one. */
  readonly root?: CID | string | undefined;
}

/**
 * Replaces the root of the files of a repo, for the case that its block is lost. Blocks are not removed, so the old
 * root can be put back until garbage is collected.
 *
 * @throws NodeError for a folder that is no repo, a repo that is in use, a root that is not here or no directory
 */
export async function replaceFilesRoot(
  repo: string,
  { root, ...options }: FilesRootOptions = {},
): Promise<ReplacedRoot> {
  const node = await openNode({ ...options, repo, offline: true, init: false });
  try {
    return await node.files.replaceRoot(typeof root === "string" ? parseCid(rootText(root)) : root);
  } finally {
    await node.close();
  }
}

function rootText(text: string): string {
  const [namespace, cid = "", ...more] = text.replace(/^\//, "").split("/");
  if (more.length > 0) throw new NodeError(`${text} is no CID: name the directory by its own`);
  return namespace === "ipfs" ? cid : (namespace as string);
}
