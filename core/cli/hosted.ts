import { createHost, type Host } from "../host.ts";
import type { Explanation, RouteInfo } from "../http/index.ts";
import type { ModuleState } from "../types.ts";
import type { CommandContext } from "./command.ts";

/** What `mod_http` gives to those who depend on it, as far as the command line asks for it. */
interface HttpRoutes {
  routes(): RouteInfo[];
  explain(method: string, path: string, authority?: string): Explanation;
}

/** Loads all modules as `run` would, but opens no port; unloads them when `use` is done. */
export async function withHost<T>(context: CommandContext, use: (host: Host) => T | Promise<T>): Promise<T> {
  const { configPath, cwd, env } = context;
  const host = createHost({ configPath, cwd, env, listen: false, log: false });
  await host.start();
  try {
    return await use(host);
  } finally {
    await host.stop();
  }
}

/** The routes of the server; none when the module `http` is not loaded. */
export function httpOf(host: Host): HttpRoutes | undefined {
  const isLoaded = host.modules().some(({ name, status }) => name === "http" && status === "loaded");
  return isLoaded ? host.exports<HttpRoutes>("http") : undefined;
}

/** The module's name, with the virtual host that the instance serves. */
export function labelOf({ name, host }: Pick<ModuleState, "name" | "host">): string {
  return host === "*" ? name : `${name} on ${host}`;
}
