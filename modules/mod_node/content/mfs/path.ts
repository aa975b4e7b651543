/** MFS paths as text. */
import { failure } from "../../util/errors.ts";
import { trimBoth } from "../../util/trim.ts";
import { clean } from "../resolver/path.ts";

export interface NamespacePath {
  /** The cleaned path, with the trailing slash of the original. */
  readonly text: string;
  readonly segments: readonly string[];
  /** Whether it ends with a slash: it names a directory, or a path inside one. */
  readonly trailingSlash: boolean;
}

/** @throws NodeError for a path that is empty or relative */
export function namespacePath(text: string): NamespacePath {
  if (text === "") throw failure("FILES_PATH_INVALID", { reason: "paths must not be empty" });
  if (!text.startsWith("/")) throw failure("FILES_PATH_INVALID", { reason: "paths must start with a leading slash" });
  const inside = text.endsWith("/");
  const segments = clean(text.split("/"));
  return pathOf(segments, inside && segments.length > 0);
}

/**
 * Parses paths as `files/flush` and `files/chcid` do: without checks and cleaning. The empty path
 * is the root.
 */
export function uncheckedPath(text: string): NamespacePath {
  const trimmed = trimBoth(text, "/");
  return pathOf(trimmed === "" ? [] : trimmed.split("/"), false);
}

const pathOf = (segments: readonly string[], inside: boolean): NamespacePath => ({
  text: `/${segments.join("/")}${inside ? "/" : ""}`,
  segments,
  trailingSlash: inside,
});

/** The parent directory; the root is its own parent. */
export const parentOf = ({ segments }: NamespacePath): NamespacePath => pathOf(segments.slice(0, -1), false);

/** The last component; undefined for the root. */
export const nameOf = ({ segments }: NamespacePath): string => segments.at(-1) as string;

/** The path of an entry of a directory. */
export const entryOf = ({ segments }: NamespacePath, name: string): NamespacePath => pathOf([...segments, name], false);

/** Whether a path equals another path or lies below it. */
export const isWithin = ({ segments }: NamespacePath, above: NamespacePath): boolean =>
  above.segments.every((segment, at) => segments[at] === segment);
