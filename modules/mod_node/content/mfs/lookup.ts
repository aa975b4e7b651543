/** Finds the entry at an MFS path. */
import { NodeError } from "../../util/errors.ts";
import { type FileEntry, Folder } from "./folder.ts";
import type { NamespacePath } from "./path.ts";

type Segments = Pick<NamespacePath, "segments">;

/** @throws NodeError when the path does not exist */
export async function lookup(root: Folder, { segments }: Segments): Promise<Folder | FileEntry> {
  let found: Folder | FileEntry = root;
  for (const [at, name] of segments.entries()) {
    if (!(found instanceof Folder)) {
      throw new NodeError(`cannot access ${segments.slice(0, at + 1).join("/")}: Not a directory`);
    }
    found = await found.child(name);
  }
  return found;
}

/** @throws NodeError when the path does not exist or is not a directory */
export async function lookupFolder(root: Folder, path: Segments): Promise<Folder> {
  const found = await lookup(root, path);
  if (found instanceof Folder) return found;
  throw new NodeError(`${withTrailingSlash(path)} is not a directory`);
}

/** Formats a path with a trailing slash. */
export const withTrailingSlash = ({ segments }: Segments): string => `/${segments.map((name) => `${name}/`).join("")}`;
