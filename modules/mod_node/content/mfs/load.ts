/** Loads the tree of MFS: the stored root, with the changes of the journal. */
import type { CID } from "multiformats/cid";
import { failure, NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { Folder, type FolderDeps } from "./folder.ts";
import type { MfsState, NamespaceChange } from "./journal.ts";
import { lookupFolder } from "./lookup.ts";

/** @throws what `deps.read` throws, unless that is a NodeError; NodeError FILES_ROOT_LOST */
export async function loadTree(
  cid: CID,
  { changes }: Pick<MfsState, "changes">,
  deps: FolderDeps,
  log: NodeLog,
): Promise<Folder> {
  const root = await openRoot(cid, deps);
  for (const change of changes) {
    try {
      await replay(root, change);
    } catch (error) {
      // A missing block may be fetched later. Until then calls fail, and the change stays in the
      // journal.
      if (!(error instanceof NodeError)) throw error;
      log.write("mfs", "error", `a change in /${change.at.join("/")} is lost: ${error.message}`);
    }
  }
  return root;
}

async function openRoot(cid: CID, deps: FolderDeps): Promise<Folder> {
  try {
    return new Folder({ name: "", cid, size: 0 }, await deps.read(cid), deps);
  } catch (error) {
    throw error instanceof NodeError ? rootLost(cid, error) : error;
  }
}

/** The error for a block that cannot be read and without which the tree cannot be loaded. */
export const rootLost = (cid: CID, error: unknown): NodeError =>
  failure("FILES_ROOT_LOST", { cid: cid.toString(), reason: (error as Error).message }, error);

/**
 * Applies a change of the journal to the tree. @throws NodeError when the tree does not match the
 * change
 */
export async function replay(root: Folder, change: NamespaceChange): Promise<void> {
  const folder = await lookupFolder(root, { segments: change.at });
  if ("put" in change) await folder.put(change.put);
  else if ("remove" in change) await folder.remove(change.remove);
  else if ("settings" in change) folder.changeSettings(change.settings);
  else if ("facts" in change) folder.changeFacts(change.facts);
  else await folder.changeForm(change.fanout);
}
