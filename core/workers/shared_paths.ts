/** Which requests are those of the first process: told by their paths, whatever the host. */
import type { HttpModule } from "../http/index.ts";
import { decodePath, parseTarget } from "../http/paths.ts";
import type { Shared } from "./messages.ts";

export type SharedPaths = Pick<Shared, "everything" | "exact" | "below">;

/**
 * Paths of the apps of shared modules. Too much is never wrong, since the first process serves all there is: a path that a
 * module of each process has a better route for may be among them.
 */
export function pathsOf(http: HttpModule | undefined, shared: ReadonlySet<string>): SharedPaths {
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
export function sharedPaths({ everything, exact, below }: SharedPaths): (path: string) => boolean {
  if (everything) return () => true;
  const paths = new Set([...exact, ...below]);
  const prefixes = below.map((path) => `${path}/`);
  return (path) => paths.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
}
