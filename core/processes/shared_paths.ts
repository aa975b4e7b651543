/** Which requests are those of some modules, for which another process may be asked: told by their paths, whatever the host. */
import type { HttpModule } from "../http/index.ts";
import { decodePath, parseTarget } from "../http/paths.ts";
import type { Paths } from "./messages.ts";

/**
 * Paths of the apps of these modules. Too much is never wrong, since whoever is asked serves all that there is here: a path that a
 * module of each process has a better route for may be among them.
 */
export function pathsOf(http: HttpModule | undefined, shared: ReadonlySet<string>): Paths {
  if (http === undefined) return { everything: false, exact: [], below: [] };
  const own = http.routes().filter(({ module }) => shared.has(module));
  const below = new Set<string>();
  const exact = new Set<string>();
  for (const { path } of own) {
    if (path.endsWith("/*")) below.add(path.slice(0, -2));
    else exact.add(path);
  }
  const isEverywhere = (layer: { module: string }) => shared.has(layer.module);
  const everything = below.has("") || http.claimants().some(isEverywhere) || http.middleware().some(isEverywhere);
  return { everything, exact: [...exact].sort(), below: [...below].sort() };
}

/** The path of a request's target, decoded; undefined for what is none, which each process refuses itself. */
export function requestPath(target: string): string | undefined {
  const end = target.indexOf("?");
  const raw = end < 0 ? target : target.slice(0, end);
  if (raw.startsWith("/") && !raw.includes("%") && !raw.includes("/.") && !raw.includes("//")) return raw;
  const parsed = parseTarget(target);
  return parsed && decodePath(parsed.rawPath);
}

/** Looks requests up. */
export function sharedPaths({ everything, exact, below }: Paths): (path: string) => boolean {
  if (everything) return () => true;
  const paths = new Set([...exact, ...below]);
  const prefixes = below.map((path) => `${path}/`);
  return (path) => paths.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
}
