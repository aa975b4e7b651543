import type { RouteInfo } from "../http/index.ts";
import { encodePath } from "../http/message/paths.ts";
import { isWebScheme, originOf } from "../http/policy/origins.ts";
import { appPaths } from "../http/routing/app_paths.ts";
import { displayName } from "../http/routing/app_urls.ts";
import type { ListeningPort } from "../types.ts";
import { hostPort } from "../util/brackets.ts";

export interface AppAddresses {
  readonly name: string;
  readonly module: string;
  readonly host: string;
  readonly urls: readonly string[];
}

/**
 * Returns every app with the URLs under which this machine reaches it: its shortest path,
 * preferably one that a browser can open, once for each scheme and port.
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

/** Returns `http on 127.0.0.1:5280`, the text for an open port. */
export function portText({ service, address, port }: ListeningPort): string {
  return `${service} on ${hostPort(address, port)}`;
}
