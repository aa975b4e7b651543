/** Finds the entry at an MFS path. */
import { failure } from "../../util/errors.ts";
import { type FileEntry, Folder } from "./folder.ts";
import type { NamespacePath } from "./path.ts";

type Segments = Pick<NamespacePath, "segments">;

/** @throws NodeError when the path does not exist */
export async function lookup(root: Folder, { segments }: Segments): Promise<Folder | FileEntry> {
  let found: Folder | FileEntry = root;
  for (const [at, name] of segments.entries()) {
    if (!(found instanceof Folder)) {
      throw failure("PATH_THROUGH_FILE", { path: segments.slice(0, at + 1).join("/") });
    }
    found = await found.child(name);
  }
  return found;
}

/** @throws NodeError when the path does not exist or is not a directory */
export async function lookupFolder(root: Folder, path: Segments): Promise<Folder> {
  const found = await lookup(root, path);
  if (found instanceof Folder) return found;
  throw failure("NOT_A_DIRECTORY", { path: withTrailingSlash(path) });
}

/** Formats a path with a trailing slash. */
export const withTrailingSlash = ({ segments }: Segments): string => `/${segments.map((name) => `${name}/`).join("")}`;
