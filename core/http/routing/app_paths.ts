/** Finds the paths under which people open apps. */
import type { RouteInfo } from "./route.ts";

export interface AppPath {
  readonly name: string;
  readonly module: string;
  /** "*" for every host. */
  readonly host: string;
  /** The shortest path of the app; a path that a browser can open is preferred. */
  readonly path: string;
  /** Whether a browser can open the path. */
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
