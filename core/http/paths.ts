/** How request targets become paths, and paths become Locations. */

export interface Target {
  /** As sent, before the query. */
  readonly rawPath: string;
  readonly query: string | undefined;
  /** Of an absolute target only. */
  readonly scheme: string | undefined;
  readonly authority: string | undefined;
}

/** Splits a request target in origin or absolute form; undefined when it is neither. */
export function parseTarget(target: string): Target | undefined {
  let scheme: string | undefined;
  let authority: string | undefined;
  let rest = target;
  if (target.charCodeAt(0) !== 47) {
    const absolute = /^(https?):\/\/([^/?#]+)(.*)$/i.exec(target);
    if (absolute === null) return undefined;
    scheme = absolute[1]?.toLowerCase();
    authority = absolute[2];
    rest = absolute[3] ?? "";
    if (!rest.startsWith("/")) rest = `/${rest}`;
  }
  const mark = rest.indexOf("?");
  if (mark < 0) return { rawPath: rest, query: undefined, scheme, authority };
  return { rawPath: rest.slice(0, mark), query: rest.slice(mark + 1) || undefined, scheme, authority };
}

/**
 * The decoded path with runs of slashes squeezed; bad escapes stay as they are and dot segments are not resolved.
 * Undefined when its `..` segments climb above the root.
 */
export function decodePath(raw: string): string | undefined {
  let path = raw.includes("%") ? raw.replace(/(?:%[0-9a-f]{2})+/gi, decodeRun) : raw;
  if (path.includes("//")) path = path.replace(/\/{2,}/g, "/");
  return path.includes("..") && climbs(path) ? undefined : path;
}

function decodeRun(escapes: string): string {
  try {
    return decodeURIComponent(escapes);
  } catch {
    return escapes;
  }
}

function climbs(path: string): boolean {
  let depth = 0;
  for (const segment of path.split("/")) {
    if (segment === "..") depth -= 1;
    else if (segment !== "" && segment !== ".") depth += 1;
    if (depth < 0) return true;
  }
  return false;
}

/** A decoded path as those read it that resolve its dot segments; the same text where it has none. */
export function withoutDots(path: string): string {
  if (!path.includes("/.")) return path;
  const segments = path.split("/");
  if (!segments.includes(".") && !segments.includes("..")) return path;
  const kept: string[] = [];
  for (const segment of segments.slice(1)) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
  }
  return `/${kept.join("/")}`;
}

/** A decoded path written as the value of a Location header. */
export function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/**
 * The paths that a path is below, and itself: "", "/a", "/a/b" for "/a/b". None is longer than `longest`: a path may have
 * thousands of segments.
 */
export function* basesOf(path: string, longest: number): Generator<string> {
  yield "";
  for (let at = path.indexOf("/", 1); at > 0 && at <= longest; at = path.indexOf("/", at + 1)) yield path.slice(0, at);
  if (path.length > 1 && path.length <= longest && !path.endsWith("/")) yield path;
}

/** The length of the longest of these; 0 for none. */
export function longestOf(texts: Iterable<string>): number {
  let longest = 0;
  for (const { length } of texts) longest = Math.max(longest, length);
  return longest;
}
