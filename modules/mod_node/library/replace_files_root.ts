/** Replaces the root of the mutable namespace (MFS) in a repo that no node has open. */
import type { CID } from "multiformats/cid";
import type { ReplacedRoot } from "../content/mfs/namespace.ts";
import { parseCid } from "../formats/cid/text.ts";
import type { NodeOptions } from "../node/low_level_node.ts";
import { openNode } from "../node/open.ts";
import { failure } from "../util/errors.ts";

export interface FilesRootOptions extends Pick<NodeOptions, "data" | "onNotice"> {
  /** A directory that is stored in the repo; by default an empty one. */
  readonly root?: CID | string | undefined;
}

/**
 * Replaces the root of the files of a repo, in case its block is lost. No blocks are removed, so
 * the old root can be restored until garbage is collected.
 *
 * @throws NodeError for a folder that is not a repo, a repo that is in use, and a root that is
 * missing or not a directory
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
  if (more.length > 0)
    throw failure("ARGUMENT_INVALID", { reason: `${text} is not a CID: give the directory's own CID` });
  return namespace === "ipfs" ? cid : (namespace as string);
}
