/** Apps and their paths, as people open them. */
import type { RouteInfo } from "./route.ts";

export interface AppPath {
  readonly name: string;
  readonly module: string;
  /** "*" for every host. */
  readonly host: string;
  /** Its shortest path, of those that a browser can open if there are any. */
  readonly path: string;
  /** A browser can open it. */
  readonly isPage: boolean;
}

export function appPaths(routes: readonly RouteInfo[]): AppPath[] {
  const apps = Map.groupBy(routes, (route) => JSON.stringify([route.host, route.module, route.app]));
  return [...apps.values()].map((own) => {
    const { app, module, host } = own[0]!;
    const served = own.filter(({ kind }) => kind !== "redirect");
    const pages = served.filter(({ method, kind }) => method === "GET" || kind === "middleware");
    const paths = (pages.length === 0 ? served : pages).map(({ path }) => path.replace(/\/\*$/, "/"));
    const path = paths.reduce((shortest, other) => (other.length < shortest.length ? other : shortest));
    return { name: app, module, host, path, isPage: pages.length > 0 };
  });
}
