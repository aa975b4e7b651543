/** Converts request targets to paths, and paths to Location headers. */

export interface Target {
  /** The path as sent, without the query. */
  readonly rawPath: string;
  readonly query: string | undefined;
  /** The scheme of an absolute target; undefined otherwise. */
  readonly scheme: string | undefined;
  readonly authority: string | undefined;
}

/** The target of a request without a path. */
export const nowhere: Target = { rawPath: "/", query: undefined, scheme: undefined, authority: undefined };

/** Splits a request target in origin or absolute form. Returns undefined for other forms. */
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
 * Decodes a path and joins runs of slashes. Invalid escapes stay as they are, and dot segments are
 * not resolved. Returns undefined when the `..` segments climb above the root.
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

/** Resolves the dot segments of a decoded path. Returns the same text when there are none. */
export function withoutDots(path: string): string {
  if (!path.includes("/.")) return path;
  const segments = path.split("/");
  if (!segments.includes(".") && !segments.includes("..")) return path;
  const resolved: string[] = [];
  for (const segment of segments.slice(1)) {
    if (segment === "..") resolved.pop();
    else if (segment !== ".") resolved.push(segment);
  }
  return `/${resolved.join("/")}`;
}

/**
 * Returns a request target in ASCII. HTTP/2 also accepts bytes that a request line of HTTP/1.1 may
 * not contain (RFC 9112, 3.2).
 */
export function asciiTarget(target: string): string {
  return target.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Encodes a decoded path for a Location header. */
export function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/**
 * Yields the parents of a path and the path itself: "", "/a", "/a/b" for "/a/b". Leaves out those
 * longer than `longest`, because a path may have thousands of segments.
 */
export function* basesOf(path: string, longest: number): Generator<string> {
  yield "";
  for (let at = path.indexOf("/", 1); at > 0 && at <= longest; at = path.indexOf("/", at + 1)) yield path.slice(0, at);
  if (path.length > 1 && path.length <= longest && !path.endsWith("/")) yield path;
}

/** Returns the length of the longest text; 0 when there are none. */
export function longestOf(texts: Iterable<string>): number {
  let longest = 0;
  for (const { length } of texts) longest = Math.max(longest, length);
  return longest;
}
