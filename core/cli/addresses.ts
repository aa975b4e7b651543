import { bracketed, displayName, encodePath, isWebScheme, originOf, type RouteInfo } from "../http/index.ts";
import type { ListeningPort } from "../types.ts";

export interface AppAddresses {
  readonly name: string;
  readonly module: string;
  readonly host: string;
  readonly urls: readonly string[];
}

/**
 * Every app with the URLs under which this machine reaches it: its shortest path, of those that a browser can open if
 * there are any, once for each scheme and port.
 */
export function appAddresses(routes: readonly RouteInfo[], ports: readonly ListeningPort[]): AppAddresses[] {
  const apps = Map.groupBy(routes, (route) => JSON.stringify([route.host, route.module, route.app]));
  return [...apps.values()].map((own) => {
    const { app, module, host } = own[0]!;
    const served = own.filter(({ kind }) => kind !== "redirect");
    const shown = served.filter(({ method, kind }) => method === "GET" || kind === "middleware");
    const paths = (shown.length === 0 ? served : shown).map(({ path }) => path.replace(/\/\*$/, "/"));
    const path = paths.reduce((shortest, other) => (other.length < shortest.length ? other : shortest));
    const urls = ports.flatMap(({ scheme, address, port }) => {
      if (!isWebScheme(scheme)) return [];
      return [originOf(scheme, host === "*" ? displayName(address) : host, port) + encodePath(path)];
    });
    return { name: app, module, host, urls: [...new Set(urls)] };
  });
}

/** `http on 127.0.0.1:5280`, as the listeners were opened. */
export function portText({ service, address, port }: ListeningPort): string {
  return `${service} on ${bracketed(address)}:${port}`;
}
