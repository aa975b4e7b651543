import type { Socket } from "node:net";
import { basename, resolve } from "node:path";
import { configFileNames } from "../config/index.ts";
import type { Host, HostOptions } from "../host.ts";
import { openConnection } from "../testing/inject.ts";
import type { LogLevel, ModuleState } from "../types.ts";
import { type CommandContext, UsageError } from "./command.ts";
import { moduleOf } from "./site.ts";

/**
 * The arguments of commands that use the same host as `run`: modules, folders of web pages, or a
 * config file.
 */
export const filesArgument = "[FILE|FOLDER…]";

/** A line of the log. */
export interface Logged {
  readonly level: LogLevel;
  /** The module that wrote it; undefined for the host. */
  readonly module?: string;
  readonly msg: string;
}

/**
 * Returns the options of the host that `run` starts: with the modules of the configuration, or only
 * with the modules and sites that the arguments name. A config file among them has the same effect
 * as --config.
 * @throws {UsageError} when there is no such file or folder, or more than one config file
 */
export function hostOptions(context: CommandContext, args: readonly string[]): HostOptions {
  const { cwd, env } = context;
  const configs = args.filter(isConfigFile);
  const others = args.filter((argument) => !isConfigFile(argument));
  const named = [context.configPath, ...configs.map((file) => resolve(cwd, file))].filter((file) => file !== undefined);
  if (named.length > 1) throw new UsageError(`There can be one config file, not ${named.join(" and ")}`);
  const common = { configPath: named[0], cwd, env };
  if (others.length === 0) return common;
  return { ...common, search: false, modules: others.map((argument) => moduleOf(argument, cwd)) };
}

/** Returns true if the name is that of a config file: modules are never YAML or JSON. */
function isConfigFile(path: string): boolean {
  const name = basename(path);
  return name !== "package.json" && (/\.(?:ya?ml|json)$/.test(name) || configFileNames.includes(name));
}

/**
 * Loads all modules as `run` would, but opens no port; unloads them when `use` is done. `logged`
 * has the warnings and errors so far.
 */
export async function withHost<T>(
  options: HostOptions,
  use: (host: Host, logged: readonly Logged[]) => T | Promise<T>,
): Promise<T> {
  const logged: Logged[] = [];
  const destination = { write: (line: string) => logged.push(JSON.parse(line)) };
  const { createHost } = await import("../host.ts");
  const host = createHost({ ...options, listen: false, log: { level: "warn", format: "json", destination } });
  await host.start();
  try {
    return await use(host, logged);
  } finally {
    await host.stop();
  }
}

/** Opens a connection to the HTTP service of a host in this process, without a port. */
export function connectTo(host: Host): Socket {
  return openConnection((socket) => host.connect("http", socket));
}

/** Returns the module's name, with the virtual host that the instance serves. */
export function labelOf({ name, host }: Pick<ModuleState, "name" | "host">): string {
  return host === "*" ? name : `${name} on ${host}`;
}
