import { createHost, type Host, type HostOptions } from "../host.ts";
import type { HttpModule } from "../http/index.ts";
import type { LogLevel, ModuleState } from "../types.ts";
import type { CommandContext } from "./command.ts";
import { moduleOf } from "./site.ts";

/** For commands that look at the same host that `run` serves. */
export const filesArgument = "[FILE|FOLDER…]";

/** A line of the log. */
export interface Logged {
  readonly level: LogLevel;
  /** The module that wrote it; undefined for the host. */
  readonly module?: string;
  readonly msg: string;
}

/**
 * The host of `run`: what the configuration says, or just the modules and sites that these arguments name.
 * @throws {UsageError} when there is no such file or folder
 */
export function hostOptions({ configPath, cwd, env }: CommandContext, args: readonly string[]): HostOptions {
  const common = { configPath, cwd, env };
  if (args.length === 0) return common;
  return { ...common, search: false, modules: args.map((argument) => moduleOf(argument, cwd)) };
}

/**
 * Loads all modules as `run` would, but opens no port; unloads them when `use` is done. `logged` are the warnings and
 * errors so far.
 */
export async function withHost<T>(
  options: HostOptions,
  use: (host: Host, logged: readonly Logged[]) => T | Promise<T>,
): Promise<T> {
  const logged: Logged[] = [];
  const destination = { write: (line: string) => logged.push(JSON.parse(line)) };
  const host = createHost({ ...options, listen: false, log: { level: "warn", format: "json", destination } });
  await host.start();
  try {
    return await use(host, logged);
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
