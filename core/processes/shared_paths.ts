/** Finds the requests for the apps of some modules by their paths, on any virtual host. */
import type { HttpModule } from "../http/index.ts";
import { decodePath, parseTarget } from "../http/message/paths.ts";
import type { Paths } from "./messages.ts";

/**
 * Returns the paths of the apps of these modules. Another module may have a better route for some
 * of these paths. The process that gets the request has that route, too.
 */
export function pathsOf(http: HttpModule | undefined, modules: ReadonlySet<string>): Paths {
  if (http === undefined) return { everything: false, exact: [], below: [] };
  const own = http.routes().filter(({ module }) => modules.has(module));
  const below = new Set<string>();
  const exact = new Set<string>();
  for (const { path } of own) {
    if (path.endsWith("/*")) below.add(path.slice(0, -2));
    else exact.add(path);
  }
  const isEverywhere = (layer: { module: string }) => modules.has(layer.module);
  const everything = below.has("") || http.claimants().some(isEverywhere) || http.middleware().some(isEverywhere);
  return { everything, exact: [...exact].sort(), below: [...below].sort() };
}

/**
 * Returns the decoded path of a request's target; undefined if it is invalid. Each process refuses
 * such a request itself.
 */
export function requestPath(target: string): string | undefined {
  const end = target.indexOf("?");
  const raw = end < 0 ? target : target.slice(0, end);
  if (raw.startsWith("/") && !raw.includes("%") && !raw.includes("/.") && !raw.includes("//")) return raw;
  const parsed = parseTarget(target);
  return parsed && decodePath(parsed.rawPath);
}

/** Returns a function that returns true for the paths. */
export function sharedPaths({ everything, exact, below }: Paths): (path: string) => boolean {
  if (everything) return () => true;
  const paths = new Set([...exact, ...below]);
  const prefixes = below.map((path) => `${path}/`);
  return (path) => paths.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
}
