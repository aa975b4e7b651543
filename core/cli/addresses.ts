import { appPaths } from "../http/app_paths.ts";
import { bracketed, displayName, isWebScheme, originOf } from "../http/app_urls.ts";
import type { RouteInfo } from "../http/index.ts";
import { encodePath } from "../http/paths.ts";
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
  return appPaths(routes).map(({ name, module, host, path }) => {
    const urls = ports.flatMap(({ scheme, address, port }) => {
      if (!isWebScheme(scheme)) return [];
      return [originOf(scheme, host === "*" ? displayName(address) : host, port) + encodePath(path)];
    });
    return { name, module, host, urls: [...new Set(urls)] };
  });
}

/** `http on 127.0.0.1:5280`, as the listeners were opened. */
export function portText({ service, address, port }: ListeningPort): string {
  return `${service} on ${bracketed(address)}:${port}`;
}
