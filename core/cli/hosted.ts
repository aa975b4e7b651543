import { createHost, type Host } from "../host.ts";
import type { HttpModule } from "../http/index.ts";
import type { ModuleState } from "../types.ts";
import type { CommandContext } from "./command.ts";

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
export function httpOf(host: Host): HttpModule | undefined {
  const isLoaded = host.modules().some(({ name, status }) => name === "http" && status === "loaded");
  return isLoaded ? host.exports<HttpModule>("http") : undefined;
}

/** The module's name, with the virtual host that the instance serves. */
export function labelOf({ name, host }: Pick<ModuleState, "name" | "host">): string {
  return host === "*" ? name : `${name} on ${host}`;
}
